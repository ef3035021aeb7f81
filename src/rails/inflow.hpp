// Inflow: whether a peer sends data, and not only a few small messages.
//
// Threads: one engine at a time.
// Lifetime: part of a Conversation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace railmux::rails {

class Inflow {
public:
    /// Once for each acknowledgement to the peer: so many bytes have come over the links that there are. What came before the
    /// last one counts for half as much. Links come and go, and what they have brought with them.
    void noted(std::uint64_t total) noexcept {
        const auto more = total - std::min(total, std::exchange(total_, total));
        lately_ = lately_ / 2 + more;
    }
    [[nodiscard]] bool data() const noexcept { return lately_ >= some; }

private:
    // In some 100 us, as acknowledgements go.
    static constexpr std::uint64_t some = 4 * 1024;

    std::uint64_t total_ = 0;
    std::uint64_t lately_ = 0;
};

}  // namespace railmux::rails

// Obstruction: a large message that is never taken, to a process that has died or left, where a provider tells of messages in
// the order in which they were sent (Port::completes_in_order): what was sent behind it, to whomever, is never told of either,
// and every link runs out of room.
//
// Threads and lifetime: part of its rail.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "base/looked_time.hpp"

namespace railmux::transports::ofi {

class Obstruction {
public:
    /// A link has ended whose messages were not all taken: from now on it is looked for.
    void suspect() noexcept { suspected_ = true; }
    [[nodiscard]] bool suspected() const noexcept { return suspected_; }

    /// The oldest message that is not taken, by its number, if there is one, and whether no link goes there any more. To be
    /// called when all has been read that the provider tells. True: it is in the way.
    [[nodiscard]] bool stands(std::optional<std::uint64_t> oldest, bool abandoned, base::Nanoseconds now) noexcept {
        const auto waited = looked_.look(now);
        if (!oldest) {
            clear();
        } else if (!abandoned || *oldest != message_) {  // whoever has a link is slow, perhaps, and takes it some time
            message_ = *oldest;
            waited_ = 0;
        } else {
            waited_ += waited;
        }
        return waited_ > limit;
    }
    void clear() noexcept { *this = {}; }

private:
    // Long for whoever is there and looks, short for whoever waits behind it.
    static constexpr base::Nanoseconds limit = 100 * base::millisecond;

    bool suspected_ = false;
    std::uint64_t message_ = 0;
    base::Nanoseconds waited_ = 0;
    base::LookedTime looked_;
};

}  // namespace railmux::transports::ofi

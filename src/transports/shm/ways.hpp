// Ways: which way large puts come faster over a link, out of the ring or fetched, by what those took that came.
//
// The receiver times both, and says from which size on it does better to fetch. The sender obeys, but for one large put in 64
// or more, which goes the other way: cores are found to be others than they were, because processes move. The more that costs,
// the rarer it is: a two-hundredth of the time at most. In the beginning, when one of the two is not known yet, every second
// one does.
//
// What a put out of the ring takes is the time from its first piece to its last: the receiver awaits the others, and no figure
// of parts, such as what it takes to copy a piece, says for how long. What a fetch takes is what it takes in all.
//
// Threads: one at a time.
// Lifetime: values.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.hpp"
#include "transports/shm/block.hpp"
#include "transports/shm/costs.hpp"

namespace railmux::transports::shm {

/// Of which bytes on puts are timed, and sent the other way: less than that the ring holds at once.
inline constexpr std::uint64_t least_timed = data_bytes + most_piece;

/// What a byte takes: the median of several, as one side may be away for a while.
class Timed {
public:
    /// True when there is a new median.
    bool add(base::Nanoseconds took, std::uint64_t bytes) noexcept;
    /// ns.
    [[nodiscard]] std::optional<double> per_byte() const noexcept { return median_; }

private:
    static constexpr std::uint32_t window = 9;
    std::array<float, window> last_{};
    std::uint32_t count_ = 0;
    std::optional<double> median_;
};

/// What the receiver knows.
struct Ways {
    Timed ring;
    Timed fetch;  // without the call

    /// Bytes from which on fetching pays, where a call takes so many ns; none: one of the two is not known.
    [[nodiscard]] std::optional<std::uint64_t> fetch_from(double call) const noexcept;
    /// Of how many large puts one goes the other way; once both are known.
    [[nodiscard]] std::uint32_t try_every(double call) const noexcept;
};

/// What the sender makes of it.
class Trying {
public:
    static constexpr std::uint32_t least_every = 64;
    static constexpr std::uint32_t most_every = 2048;  // of 64 KiB: nine, a new median, come within 0.2 s

    /// Whether the next large put goes the way that is not thought best; `every` is what the other side tells.
    [[nodiscard]] bool other_way(bool known, std::uint32_t every) noexcept {
        if (++count_ < (known ? std::clamp(every, least_every, most_every) : 2)) return false;
        count_ = 0;
        return true;
    }

private:
    std::uint32_t count_ = 0;
};

}  // namespace railmux::transports::shm

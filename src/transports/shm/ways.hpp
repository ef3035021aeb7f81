// Ways: which way large puts come faster over a link, out of the ring or fetched, by what those took that came.
//
// The receiver times both, and says from which size on it does better to fetch. The sender obeys, but for a large put now and
// then, which goes the other way: cores are found to be others than they were, because processes move. What that costs is a
// two-hundredth of the time. In the beginning, when one of the two is not known yet, every second one does.
//
// What a put out of the ring takes is the time from its first piece to its last: the receiver awaits the others, and no figure
// of parts, such as what it takes to copy a piece, says for how long. What a fetch takes is what it takes in all, less
// the call.
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
    /// How long large puts keep to the better way after one of 64 KiB has gone the other, ns; once both are known.
    [[nodiscard]] std::uint32_t try_apart(double call) const noexcept;
};

/// What the sender makes of it.
class Trying {
public:
    static constexpr std::uint32_t usual_every = 64;  // puts, or if those take longer:
    static constexpr base::Nanoseconds longest_apart = 50 * base::millisecond;

    /// Whether the next large put, of so many bytes, goes the way that is not thought best; `apart` is what the other side
    /// tells (Ways::try_apart).
    template <typename Clock>
    [[nodiscard]] bool other_way(bool known, std::uint32_t apart, std::uint64_t bytes, Clock clock) noexcept {
        if (++count_ % (known ? look_every : 2) != 0) return false;
        const auto now = known ? clock() : 0;
        if (known && (now < next_ || (count_ < usual_every && now - last_ < longest_apart))) return false;
        count_ = 0;
        last_ = now;
        next_ = now + static_cast<base::Nanoseconds>(std::uint64_t{apart} * (bytes >> 10) / tried_kib);
        return true;
    }

    static constexpr std::uint64_t tried_kib = 64;

private:
    static constexpr std::uint32_t look_every = 8;  // puts: not for each of them at the clock

    std::uint32_t count_ = 0;
    base::Nanoseconds last_ = 0;
    base::Nanoseconds next_ = 0;
};

}  // namespace railmux::transports::shm

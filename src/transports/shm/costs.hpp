// What carrying bytes costs in this process, and how the shm rail carries puts in view of that.
//
// Fetched, a put costs a system call and one copy; by way of the ring two copies, and that the lines of the ring cross between
// cores. When the rail opens this process reads its own memory, in a cache: there is no other core to ask yet. Bytes that the
// sender has just written make a fetch a tenth dearer at most, because they come in order; so only for the ring the crossing
// counts. What that takes depends on where the two processes run, from hardly anything between two threads of one core to
// more than a fetch between two sockets: each link measures it (Crossing), by the pieces of frames that come out of its ring.
//
// Threads: any.
// Lifetime: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/clock.hpp"

namespace railmux::transports::shm {

inline constexpr std::uint64_t never_fetch = ~std::uint64_t{0};
/// A single piece by way of the ring is never slower, as its slot and the bytes are on their way at the same time.
inline constexpr std::uint64_t least_fetch = 4097;

struct Costs {
    double copy_per_byte = 0;  // ns
    double fetch = 0;          // ns of a call
    double fetch_per_byte = 0;
    bool can_fetch = false;  // at all; of another process it is tried when a link is set up
};

struct Bulk {
    std::uint64_t fetch_from = never_fetch;  // bytes of a put from which on the receiver fetches it
    std::uint64_t speed_bps = 0;             // of copying
    std::optional<Costs> judge{};  // by which a link judges anew when it knows its crossing; none: it does not
};

/// Takes about 0.2 ms.
[[nodiscard]] Costs measure_costs();

/// `wanted` is the parameter shm.bulk: auto, fetch or copy.
[[nodiscard]] Bulk choose_bulk(std::string_view wanted, const Costs& costs);

/// The least put that is cheaper fetched, where a byte takes so long to come out of the ring.
[[nodiscard]] std::uint64_t fetch_pays_from(const Costs& costs, double crossing_per_byte) noexcept;

/// How long a piece takes to come out of a ring: the lower quartile of several. Most of what disturbs only adds, and the fetch
/// that it is compared to is the fastest of several.
class Crossing {
public:
    /// Whether the next piece is to be timed: the first ones, then few, as two looks at the clock cost a tenth of a piece.
    [[nodiscard]] bool due() noexcept { return ++pieces_ <= window || pieces_ % period == 0; }
    /// ps for each byte, when there is a new quartile.
    [[nodiscard]] std::optional<std::uint32_t> add(base::Nanoseconds took, std::uint32_t bytes) noexcept;

private:
    static constexpr std::uint32_t window = 9;
    static constexpr std::uint32_t period = 16;
    std::array<std::uint32_t, window> last_{};
    std::uint32_t count_ = 0;
    std::uint32_t pieces_ = 0;
};

}  // namespace railmux::transports::shm

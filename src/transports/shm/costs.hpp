// What carrying bytes costs in this process, and how the shm rail carries puts in view of that.
//
// Fetched, a put costs a system call and one copy; by way of the ring two copies, and that the lines of the ring cross between
// cores. What that takes depends on where the two processes run, from hardly anything between two threads of one core to more
// than a fetch between two sockets, and nothing measured beforehand tells it: so each link times what comes (ways.hpp). Until
// that is known it is judged by what a process that reads its own memory takes, and by what is usual for a ring.
//
// Threads: any.
// Lifetime: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

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
    std::optional<Costs> judge{};            // a link judges by what it finds; none: it does not
};

/// Takes about 0.2 ms.
[[nodiscard]] Costs measure_costs();

/// `wanted` is the parameter shm.bulk: auto, fetch or copy.
[[nodiscard]] Bulk choose_bulk(std::string_view wanted, const Costs& costs);

/// The least put that is cheaper fetched, where a call takes so long, and then a byte either way. In ns.
[[nodiscard]] std::uint64_t fetch_pays_from(double call, double fetch_per_byte, double ring_per_byte) noexcept;

}  // namespace railmux::transports::shm

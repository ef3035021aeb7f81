// What carrying bytes costs in this process, and how the shm rail carries puts in view of that.
//
// Fetched, a put costs a system call and one copy; by way of the ring two copies, and that the lines of the ring cross between
// cores. Measured is this process reading its own memory, in a cache: there is no other core to ask. Bytes that the sender has
// just written make a fetch a tenth dearer at most, because they come in order; so only for the ring the crossing counts.
//
// Threads: any.
// Lifetime: values.
#pragma once

#include <cstdint>
#include <string_view>

namespace railmux::transports::shm {

inline constexpr std::uint64_t never_fetch = ~std::uint64_t{0};
/// A single piece by way of the ring is never slower, as its slot and the bytes are on their way at the same time.
inline constexpr std::uint64_t least_fetch = 4097;

struct Bulk {
    std::uint64_t fetch_from = never_fetch;  // bytes of a put from which on the receiver fetches it
    std::uint64_t speed_bps = 0;             // of copying
};

struct Costs {
    double copy_per_byte = 0;  // ns
    double fetch = 0;          // ns of a call
    double fetch_per_byte = 0;
    bool can_fetch = false;  // at all; of another process it is tried when a link is set up
};

/// Takes about 0.2 ms.
[[nodiscard]] Costs measure_costs();

/// `wanted` is the parameter shm.bulk: auto, fetch or copy.
[[nodiscard]] Bulk choose_bulk(std::string_view wanted, const Costs& costs);

}  // namespace railmux::transports::shm

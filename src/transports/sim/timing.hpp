// Timing: how long a frame takes on a simulated rail, by LogGP; and the arithmetic behind it.
//
// For a frame of s bytes (a frame of no bytes counts as one) that is posted at time t:
//   ready   = max(t, CPU of the host free)        then the CPU is busy for o_s(s)
//   start   = max(ready, rail free)
//   rail free again = start + g + (s-1) G         this is when the work is `done`
//   deliver = start + o_s(s) + L + o_r(s) + (s-1) G + noise
// With a token bucket, (s-1) G becomes the time the bucket lets the bytes through in.
//
// Threads: values and one-thread objects.
// Lifetime: own what they hold.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/clock.hpp"

namespace railmux::transports::sim {

/// Time inside the fabric: 1/1024 ns, so that a 400 Gb/s rail's 0.02 ns a byte add up without drift. 2^63 ticks are
/// 104 days.
using Ticks = std::int64_t;
inline constexpr Ticks ticks_per_ns = 1024;

[[nodiscard]] Ticks to_ticks(double ns) noexcept;  // rounds to the nearest
[[nodiscard]] inline Ticks to_ticks(base::Nanoseconds ns) noexcept { return ns * ticks_per_ns; }
/// Rounds up: at that nanosecond it has happened.
[[nodiscard]] inline base::Nanoseconds to_ns(Ticks ticks) noexcept { return (ticks + ticks_per_ns - 1) / ticks_per_ns; }

/// CPU time of one frame: ns + ns_per_byte * s.
struct Overhead {
    double ns = 0;
    double ns_per_byte = 0;
    [[nodiscard]] Ticks of(std::uint64_t bytes) const noexcept;
};

/// LogGP parameters of one protocol: all in ns, G in ns per byte.
struct Range {
    std::uint64_t up_to_bytes = std::numeric_limits<std::uint64_t>::max();  // the last size it is good for
    double L = 1000;
    Overhead o_s{};
    Overhead o_r{};
    double g = 100;
    double G = 0.08;  // 100 Gb/s
};

/// Behaviour of one direction of a link.
struct Timing {
    std::vector<Range> ranges =
        std::vector<Range>(1);  // by ascending up_to_bytes; the last one takes everything above, too
    double noise_mean_ns = 0;   // one-sided exponential noise added to `deliver`
    // Token bucket, as tc's tbf: up to burst_bytes pass at burst_G, the rest at G; it fills again at 1/G while there is
    // room. Fluid: a frame larger than what is in the bucket goes partly at each rate.
    std::uint64_t burst_bytes = 0;
    double burst_G = 0;

    [[nodiscard]] const Range& range(std::uint64_t bytes) const noexcept;
};

/// A rail with one protocol for all sizes and nothing random.
[[nodiscard]] Timing simple_timing(double L, double o_s, double o_r, double g, double G);

/// What a rail's token bucket holds. One per rail, whatever the destination.
class Bucket {
public:
    /// The time (s-1) bytes take from `start` on; takes their tokens out.
    [[nodiscard]] Ticks pass(Ticks start, std::uint64_t bytes, const Range& range, const Timing& timing) noexcept;

private:
    double tokens_ = std::numeric_limits<double>::max();  // full, whatever its size
    Ticks filled_at_ = 0;
};

}  // namespace railmux::transports::sim

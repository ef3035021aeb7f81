// Ticks: the scheduler's time: 1/1024 ns, so that the time of a byte on a 400 Gbit/s rail (0.02 ns) adds up without
// drift. 104 days fit: times are counted from where a policy begins, not from when the machine started.
//
// Threads: values.
// Lifetime: none.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/clock.hpp"

namespace railmux::sched {

using Ticks = std::int64_t;
inline constexpr Ticks ticks_per_ns = 1024;

[[nodiscard]] constexpr Ticks to_ticks(base::Nanoseconds ns) noexcept { return ns * ticks_per_ns; }
/// For set-up: the paths that decide use no floating point.
[[nodiscard]] inline Ticks to_ticks(double ns) noexcept { return std::llround(ns * static_cast<double>(ticks_per_ns)); }

/// For people and models.
[[nodiscard]] inline double to_ns(Ticks ticks) noexcept { return static_cast<double>(ticks) / ticks_per_ns; }

/// bytes * ticks, kept far from overflow: what takes longer than a day is not distinguished.
[[nodiscard]] inline Ticks times(std::uint64_t bytes, Ticks per_byte) noexcept {
    constexpr Ticks longest = to_ticks(86'400 * base::second);
    // Of one type: the overflow check of mixed signs costs several times as much.
    Ticks product = 0;
    if (__builtin_mul_overflow(static_cast<Ticks>(bytes), per_byte, &product)) return longest;
    return product < longest ? product : longest;
}

}  // namespace railmux::sched

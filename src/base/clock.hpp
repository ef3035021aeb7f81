// Time as integers: nanoseconds of the monotonic clock.
//
// Threads: values and pure functions.
// Lifetime: none.
#pragma once

#include <chrono>
#include <cstdint>

namespace railmux::base {

/// Nanoseconds on the monotonic clock; also a span of time.
using Nanoseconds = std::int64_t;

inline constexpr Nanoseconds microsecond = 1'000;
inline constexpr Nanoseconds millisecond = 1'000'000;
inline constexpr Nanoseconds second = 1'000'000'000;

/// About 20 ns (vDSO). The model and the scheduler never call this: time is an argument there.
[[nodiscard]] inline Nanoseconds now_ns() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace railmux::base

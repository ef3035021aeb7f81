// Time that goes by more slowly, for programs under callgrind, which slows them: what is done once in so many microseconds is
// then done once in as many messages as at full speed.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.hpp"

#if defined(__x86_64__)
/// Until now time goes by as ever; from now on so many times slower.
inline void slow_time(double times) {
    using railmux::base::now_ns;
    constexpr double unit = 4294967296.0;  // of TickLine::scale
    const auto begun = now_ns();
    const auto from = __rdtsc();
    while (now_ns() - begun < 20 * railmux::base::millisecond) continue;
    const auto ticks = __rdtsc();
    const auto now = now_ns();
    const auto rate = static_cast<double>(now - begun) / static_cast<double>(ticks - from);
    railmux::base::detail::process_clock.set({.since = ticks,
                                              .ns = now,
                                              .scale = static_cast<std::uint64_t>(rate * unit / times),
                                              .span = ~std::uint64_t{0}});
}
#else
inline void slow_time(double) {}
#endif

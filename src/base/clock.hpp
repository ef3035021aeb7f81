// Time as integers: nanoseconds of the monotonic clock.
//
// Where the processor's time stamp counter runs at one rate on all cores, and the kernel itself trusts it, it is read
// directly, at half the cost of the system's clock; that clock corrects its rate again and again.
//
// Threads: any; one thread never sees time go back.
// Lifetime: none.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "base/tick_clock.hpp"

namespace railmux::base {

using Clock = Nanoseconds (*)();  // who is to know the time is given one: tests run under their own

inline constexpr Nanoseconds microsecond = 1'000;
inline constexpr Nanoseconds millisecond = 1'000'000;
inline constexpr Nanoseconds second = 1'000'000'000;
inline constexpr Nanoseconds never = Nanoseconds{1} << 62;  // later than any time that comes

namespace detail {
extern constinit SharedTickClock process_clock;
/// When the counter's reading has become too old, or there is none.
[[nodiscard]] Nanoseconds now_by_system() noexcept;
}  // namespace detail

/// About 12 ns, or 25 where the counter cannot be used. The model and the scheduler never call this: time is an argument
/// there.
[[nodiscard]] inline Nanoseconds now_ns() noexcept {
#if defined(__x86_64__)
    if (const auto now = detail::process_clock.at(__rdtsc()); now != SharedTickClock::unknown) [[likely]]
        return now;
#endif
    return detail::now_by_system();
}

}  // namespace railmux::base

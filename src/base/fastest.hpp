// fastest_ns: what a step takes when nothing disturbs it.
//
// Threads: any.
// Lifetime: none.
#pragma once

#include <algorithm>
#include <limits>

#include "base/clock.hpp"

namespace railmux::base {

/// Nanoseconds, at least 1, of the fastest of `rounds` runs: whatever else happens only adds to it.
template <typename Step>
[[nodiscard]] double fastest_ns(int rounds, Step step) {
    auto best = std::numeric_limits<Nanoseconds>::max();
    for (int i = 0; i < rounds; ++i) {
        const auto begun = now_ns();
        step();
        best = std::min(best, now_ns() - begun);
    }
    return static_cast<double>(std::max<Nanoseconds>(best, 1));
}

}  // namespace railmux::base

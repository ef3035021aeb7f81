// LookedTime: time in which this process looked. One that computed or was stopped for a while has not waited for others.
//
// Threads and lifetime: part of whoever looks.
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace railmux::base {

class LookedTime {
public:
    LookedTime() noexcept = default;
    /// Between two looks no more than `longest` counts: whoever looks all the time, or sleeps for less, has looked throughout.
    explicit LookedTime(Nanoseconds longest) noexcept : longest_(longest) {}
    /// Since the last look, which began with the first.
    [[nodiscard]] Nanoseconds look(Nanoseconds now) noexcept {
        const auto waited = last_ == 0 ? 0 : std::min(now - last_, longest_);
        last_ = now;
        return waited;
    }
    void end() noexcept { last_ = 0; }

private:
    Nanoseconds longest_ = 10 * millisecond;
    Nanoseconds last_ = 0;
};

}  // namespace railmux::base

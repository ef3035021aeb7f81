// LookedTime: time in which this process looked. One that computed or was stopped for a while has not waited for others.
//
// Threads and lifetime: part of whoever looks.
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace railmux::transports::ofi {

class LookedTime {
public:
    /// Since the last look, which began with the first.
    [[nodiscard]] base::Nanoseconds look(base::Nanoseconds now) noexcept {
        const auto waited = last_ == 0 ? 0 : std::min(now - last_, longest);
        last_ = now;
        return waited;
    }
    void end() noexcept { last_ = 0; }

private:
    static constexpr base::Nanoseconds longest = 10 * base::millisecond;
    base::Nanoseconds last_ = 0;
};

}  // namespace railmux::transports::ofi

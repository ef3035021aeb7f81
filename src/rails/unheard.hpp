// Unheard: for how long the process at the other end has said nothing over a link whose network tells nothing by itself
// (transports::Pulse::known). Such a link is dead, or that process computes: which of both shows only when it is heard over
// another link meanwhile, or when it lasts for longer than any computation.
//
// Threads: one engine at a time. Pure: time is an argument.
// Lifetime: part of a Link.
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace railmux::rails {

class Unheard {
public:
    /// At each look. `said_at` is when something last came over this link; `elsewhere`, whether something came over another one
    /// of late. Between two looks at most `longest` counts, as nobody knows what a process missed that did not look.
    void look(base::Nanoseconds said_at, bool elsewhere, base::Nanoseconds longest, base::Nanoseconds now) noexcept {
        const auto elapsed = looked_ == 0 ? 0 : std::min(now - looked_, longest);
        if (said_at >= looked_) silent_ = passed_over_ = 0;
        silent_ += elapsed;
        if (elsewhere) passed_over_ += elapsed;
        looked_ = now;
    }
    [[nodiscard]] base::Nanoseconds silent() const noexcept { return silent_; }
    /// ... while something else was heard of that process.
    [[nodiscard]] base::Nanoseconds passed_over() const noexcept { return passed_over_; }

private:
    base::Nanoseconds looked_ = 0;
    base::Nanoseconds silent_ = 0;
    base::Nanoseconds passed_over_ = 0;
};

}  // namespace railmux::rails

// Demand: how much of a rail's time is taken by what was handed to it lately. An average over some milliseconds, of which
// the latest count for most.
//
// Threads: one thread at a time per object. Pure: time is an argument.
// Lifetime: a value.
#pragma once

#include <algorithm>

#include "sched/ticks.hpp"

namespace railmux::sched {

class Demand {
public:
    // A rail that is always used has taken so much lately.
    static constexpr Ticks all = to_ticks(4 * base::millisecond);

    /// Something has been handed over that takes the rail so long.
    void add(Ticks taken, Ticks now) noexcept {
        lately_ = lately(now) + taken;
        since_ = std::max(since_, now - now % step);
    }
    /// What was handed over lately takes, of `all`.
    [[nodiscard]] Ticks lately(Ticks now) const noexcept {
        auto left = lately_;
        for (auto steps = (now - since_) / step; steps > 0 && left >= parts; --steps) left -= left / parts;
        return left;
    }

private:
    static constexpr Ticks parts = 16;
    static constexpr Ticks step = all / parts;

    Ticks lately_ = 0;
    Ticks since_ = 0;  // a multiple of step
};

}  // namespace railmux::sched

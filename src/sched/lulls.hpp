// Lulls: for how long no heavy frame was under way between two processes, all told: they computed meanwhile, or waited for
// others.
//
// What bursts take is to be compared (SpreadContest), whatever comes between them. A lull begins when the last heavy frame has
// come, here or, as far as known here, there; and ends with the next one that is sent here, or comes. What is on the way from
// there, and slow, cannot be told from one: so the first of a burst should not be so slow, and lulls of some turns of the
// processors do not count.
//
// Threads: one thread at a time. Pure: time is an argument.
// Lifetime: a value; of one peer.
#pragma once

#include "base/clock.hpp"

namespace railmux::sched {

class Lulls {
public:
    /// A heavy frame goes, or has come. `under_way`: one of ours was, before it.
    void stirred(bool under_way, base::Nanoseconds now) noexcept {
        const auto since = now - last_;
        if (!under_way && last_ > 0 && since > shortest) all_ += since;
        last_ = now;
    }
    /// Some of ours are known to have come through.
    void came_through(base::Nanoseconds now) noexcept { last_ = now; }

    [[nodiscard]] base::Nanoseconds all() const noexcept { return all_; }

private:
    static constexpr base::Nanoseconds shortest = base::millisecond;

    base::Nanoseconds last_ = 0;
    base::Nanoseconds all_ = 0;
};

}  // namespace railmux::sched

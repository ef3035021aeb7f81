// Lulls: for how long no heavy frame was under way between two processes, all told: they computed meanwhile, or waited for
// others.
//
// What bursts take is to be compared (SpreadContest), whatever comes between them. A lull begins when the last heavy frame has
// come, here or, as far as known here, there; and ends with the next one that is sent here, or comes. What is on the way from
// there over a slow rail cannot be told from one, and must not be taken for one: only what lasts much longer counts.
//
// Threads: one thread at a time. Pure: time is an argument.
// Lifetime: a value; of one peer.
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace railmux::sched {

class Lulls {
public:
    /// A heavy frame goes. `under_way`: one of ours was, before it.
    void sent(bool under_way, base::Nanoseconds now) noexcept { stirred(under_way, now); }
    /// One has come: behind others of the same burst, perhaps, which says nothing of what its sender does.
    void came(bool under_way, base::Nanoseconds now) noexcept {
        stirred(under_way || last_came_, now);
        last_came_ = true;
    }
    /// Some of ours are known to have come through.
    void came_through(base::Nanoseconds now) noexcept {
        last_ = now;
        last_came_ = false;
    }

    /// Over the slowest of the rails a frame may take so long.
    void expect(base::Nanoseconds longest_delivery) noexcept { shortest_ = std::max(least, 4 * longest_delivery); }

    [[nodiscard]] base::Nanoseconds all() const noexcept { return all_; }

private:
    void stirred(bool under_way, base::Nanoseconds now) noexcept {
        const auto since = now - last_;
        if (!under_way && last_ > 0 && since > shortest_) all_ += since;
        last_ = now;
        last_came_ = false;
    }

    // The longest frame over a rail of 10 Mbit/s takes 13 ms, whether or not anybody knows that.
    static constexpr base::Nanoseconds least = 20 * base::millisecond;

    base::Nanoseconds shortest_ = least;
    base::Nanoseconds last_ = 0;
    bool last_came_ = false;  // ... and nothing went since
    base::Nanoseconds all_ = 0;
};

}  // namespace railmux::sched

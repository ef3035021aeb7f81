// LoneTrial: when a message that goes alone is to try a link whose latency traffic has not shown of late.
//
// What a probe that was held up says of a latency may be many times too much. Where messages go alone they all go over the
// nearest rail then, by what is known, and nothing shows that another is nearer. So one of them, now and then, goes over a rail
// of which nothing is known but what the probe said: what comes of it is a bound. More and more seldom, because most probes are
// right: a rail ten times as far as others costs some messages in the first second that time, and two in each later one.
//
// Threads: one thread at a time per object.
// Lifetime: a value; of one link.
#pragma once

#include <algorithm>

#include "base/clock.hpp"
#include "sched/ticks.hpp"

namespace railmux::sched {

class LoneTrial {
public:
    /// What is thought of the latency is doubted if it is no more than so many times that of the nearest rail: no probe is held
    /// up for longer, and a message would be.
    static constexpr Ticks most_doubted = 64;

    /// `busy` is a clock that stands while there is no traffic on any rail.
    [[nodiscard]] bool due(base::Nanoseconds busy) const noexcept { return busy >= due_; }
    /// A message goes.
    void went(base::Nanoseconds busy) noexcept {
        due_ = busy + wait_;
        wait_ = std::min(2 * wait_, longest_wait);
    }

private:
    static constexpr base::Nanoseconds first_wait = 2 * base::millisecond;
    static constexpr base::Nanoseconds longest_wait = 512 * base::millisecond;

    base::Nanoseconds due_ = first_wait;  // not with the first messages of a process
    base::Nanoseconds wait_ = first_wait;
};

}  // namespace railmux::sched

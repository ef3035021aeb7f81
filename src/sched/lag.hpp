// Lag: how much later than predicted messages come that have their rail to themselves.
//
// A rail that lets bursts through at once looks fast until its bucket is empty (see lateness.hpp); who then sends one message
// after the other, each of which waits for the answer, fills it just as fast as it is emptied. Messages are late then by a
// few times what they take, but by too little, and they are too few bytes, to show a rate. So what they are late by counts as
// latency, until they are late no more.
//
// One message may be late because somebody was looking elsewhere: what counts is the least of the last four. On a rail that
// is used no more nothing shows that it has recovered, so what it lagged by is thought half as much each 100 ms of traffic.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/clock.hpp"
#include "sched/ticks.hpp"

namespace railmux::sched {

class Lag {
public:
    /// A message took so long, one way. `busy` is a clock that stands while there is no traffic on any rail.
    void arrived(Ticks took, Ticks predicted, base::Nanoseconds busy) noexcept {
        // What differs by less is a matter of when both sides look.
        late_[count_++ % late_.size()] = took > predicted + predicted / 2 ? took - predicted : 0;
        seen_ = busy;
    }
    [[nodiscard]] Ticks least(base::Nanoseconds busy) const noexcept {
        const auto halvings = std::clamp<base::Nanoseconds>((busy - seen_) / half_life, 0, 62);
        return *std::ranges::min_element(late_) >> halvings;
    }

private:
    static constexpr base::Nanoseconds half_life = 100 * base::millisecond;

    std::array<Ticks, 4> late_{};
    std::uint32_t count_ = 0;
    base::Nanoseconds seen_ = 0;
};

}  // namespace railmux::sched

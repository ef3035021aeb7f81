// Echo: the latency of a link, from acknowledgements.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"
#include "sched/proven.hpp"
#include "sched/ticks.hpp"

namespace railmux::sched {

/// The latency of one link, from small messages that met no backlog: the least of late, because whatever else happened only
/// added to it. What all of few are late by, as while a process starts, may be chance. A link that is used no more for it would
/// never show that, so what was heard beyond what was thought counts half as much after each 100 ms of traffic.
class Echo {
public:
    /// One came back acknowledged after `round_trip`, less what it was held over there. `busy` is a clock that stands while
    /// there is no traffic on any rail.
    void heard(base::Nanoseconds round_trip, base::Nanoseconds now, base::Nanoseconds busy) noexcept {
        least_.note(std::max<base::Nanoseconds>(round_trip, 1), now);
        heard_ = busy;
    }
    /// One way, as heard; 0 while unknown. For who asks how long an answer may take.
    [[nodiscard]] Ticks latency(base::Nanoseconds now) const noexcept {
        return least_.any(now, enough) ? to_ticks(least_.least()) / 2 : 0;
    }
    /// The same for who chooses, where the model has `thought`.
    [[nodiscard]] Ticks latency(base::Nanoseconds now, base::Nanoseconds busy, Ticks thought) const noexcept {
        const auto least = latency(now);
        if (least == 0) return 0;
        const auto halvings = std::clamp<base::Nanoseconds>((busy - heard_) / half_life, 0, 62);
        return least <= thought ? least : thought + ((least - thought) >> halvings);
    }

    /// It is no more than that, one way, by whatever was heard; 0 while nothing was.
    [[nodiscard]] Ticks bound(base::Nanoseconds now) const noexcept {
        return least_.any(now, 1) ? to_ticks(least_.least()) / 2 : 0;
    }

private:
    // The least of fewer may well be one that a peer was late for.
    static constexpr std::uint32_t enough = 8;
    static constexpr base::Nanoseconds half_life = 100 * base::millisecond;

    LeastOfLate<base::Nanoseconds> least_;
    base::Nanoseconds heard_ = 0;  // when something was, of the busy clock
};

}  // namespace railmux::sched

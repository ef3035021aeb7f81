// RateTurns: what a byte takes over each rail, for bursts that go over all of them in turn by rates (Spread::by_rate).
//
// They begin with the rates that traffic had shown before: what goes in turns passes with what rails save up, and is no fair
// measure. A slow rail that is given more than it carries uses up what it had saved and then holds up all, by as much; one that
// is given less by as much costs a hundredth. So a slower rail counts as slower at first, as rates are known to an eighth but
// for nominal ones, and more so while it holds up what it is given. While that passes at once it is given more, little by
// little: by a fifth in a second until that was too much once, by a tenth since. Of a rail that saves nothing up neither says
// anything.
//
// Threads: one thread at a time. Pure: time is an argument.
// Lifetime: a value; of one peer and its links, whose candidates have the turns.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "sched/pace.hpp"
#include "sched/policy.hpp"
#include "sched/ticks.hpp"

namespace railmux::sched {

class RateTurns {
public:
    /// By what traffic has shown, or what is supposed.
    void begin(std::span<Candidate> candidates, base::Nanoseconds now) noexcept {
        const auto least = fastest(candidates, &Candidate::shown);
        for (auto& candidate : candidates) {
            const bool nominal = candidate.supposed && candidate.shown == candidate.nominal;
            const auto doubt = nominal ? 0 : std::max<Ticks>(candidate.shown - least, 0) / 8;
            candidate.turn = candidate.shown + doubt;
            candidate.first_turn = candidate.turn;
        }
        looked_ = now;
        known_ = false;
    }
    /// By how what goes so passes.
    void follow(std::span<Candidate> candidates, std::span<const Pace> paces, base::Nanoseconds now) noexcept {
        if (now - looked_ < spacing) return;
        const auto before = std::exchange(looked_, now);
        const auto least = fastest(candidates, &Candidate::turn);
        for (auto& candidate : candidates) {
            const auto& pace = paces[candidate.rail];
            if (candidate.spare || candidate.turn <= least) continue;
            if (!pace.saves_up(now) || pace.passed_at() <= before) continue;
            adjust(candidate, pace.passes() > candidate.turn / held_part);
        }
    }

private:
    // A rail that is given a tenth too much uses up what shapers save within ten of these.
    static constexpr base::Nanoseconds spacing = 20 * base::millisecond;
    // What waits for a rail that has nothing left takes half of what a byte takes there, since others go meanwhile.
    static constexpr Ticks held_part = 4;

    void adjust(Candidate& candidate, bool held) noexcept {
        auto& turn = candidate.turn;
        const auto first = candidate.first_turn;
        if (held) {
            turn = std::min(turn + std::max<Ticks>(turn / 16, 1), first + first / 2);
            known_ = true;
        } else {
            turn = std::max(turn - std::max<Ticks>(turn / (known_ ? 512 : 256), 1), first - first / 4);
        }
    }
    [[nodiscard]] static Ticks fastest(std::span<const Candidate> candidates, Ticks Candidate::*takes) noexcept {
        auto least = std::numeric_limits<Ticks>::max();
        for (const auto& candidate : candidates) {
            if (!candidate.spare && candidate.*takes > 0) least = std::min(least, candidate.*takes);
        }
        return least;
    }

    base::Nanoseconds looked_ = 0;
    bool known_ = false;  // how much is too much
};

}  // namespace railmux::sched

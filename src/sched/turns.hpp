// Turns: what a byte takes over each rail, for bursts that go over all of them in turn by rates (Spread::by_rate).
//
// Turns begin with the rates that traffic had shown before: what goes so passes with what rails save up, and is no fair
// measure. A slow rail that is given more than it carries uses up what it had saved and then holds up all, by as much; one
// that is given less by as much costs a hundredth. So a slower rail counts as slower at first, as rates are known to an
// eighth, and more so while it holds up what it is given. While that passes at once it is given more, little by little: by a
// fifth in a second until that was too much once, by a tenth since.
//
// Threads: one thread at a time. Pure: time is an argument.
// Lifetime: a value; of one peer and its links.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "base/clock.hpp"
#include "sched/pace.hpp"
#include "sched/policy.hpp"
#include "sched/ticks.hpp"

namespace railmux::sched {

class Turns {
public:
    /// By what traffic has shown.
    void begin(std::span<Candidate> candidates, base::Nanoseconds now) noexcept {
        const auto least = fastest(candidates, &Candidate::shown);
        for (auto& candidate : candidates) {
            candidate.turn = candidate.shown + std::max<Ticks>(candidate.shown - least, 0) / 8;
            candidate.first_turn = candidate.turn;
        }
        looked_ = now;
        known_ = false;
    }
    /// By how what goes so passes.
    void follow(std::span<Candidate> candidates, std::span<const Pace> paces, base::Nanoseconds now) noexcept {
        if (now - looked_ < spacing) return;
        looked_ = now;
        const auto least = fastest(candidates, &Candidate::turn);
        for (auto& candidate : candidates) {
            if (candidate.spare || candidate.turn <= least) continue;
            auto& turn = candidate.turn;
            const auto first = candidate.first_turn;
            if (paces[candidate.rail].holds_up()) {
                turn = std::min(turn + turn / 16, 2 * first);
                known_ = true;
            } else {
                turn = std::max(turn - turn / (known_ ? 512 : 256), first - first / 4);
            }
        }
    }

private:
    // A rail that is given a tenth too much uses up what shapers save within ten of these.
    static constexpr base::Nanoseconds spacing = 20 * base::millisecond;

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

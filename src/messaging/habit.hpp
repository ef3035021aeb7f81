// Habit: whether somebody who sends several messages looks for results right behind them, often enough that they may wait for
// that look. Only then may they: who computes in between is not to find that nothing was sent meanwhile.
//
// It is a balance of time. A burst that was looked for at once is worth what its messages save by leaving together; one that
// was not costs as long as they waited, or would have waited. A look that an interrupt or another process puts off by some
// microseconds now and then ends nothing; who computes behind every tenth burst soon has no habit, and what it costs to compute
// once behind a thousand of them is no more than they have saved.
//
// Threads: one engine at a time. Pure.
// Lifetime: a value.
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace railmux::messaging {

class Habit {
public:
    /// A burst was looked for at once, and so much is saved if its messages wait for that.
    void prompt(base::Nanoseconds saved) noexcept { balance_ = std::min(balance_ + saved, most); }
    /// One was looked for so much later.
    void late(base::Nanoseconds by) noexcept { balance_ = std::max(balance_ - by, least); }
    [[nodiscard]] bool shown() const noexcept { return balance_ >= 0; }

private:
    // So that it takes some bursts to show one.
    static constexpr base::Nanoseconds at_first = -5 * base::microsecond;
    // Whoever has changed his ways is believed after some bursts.
    static constexpr base::Nanoseconds most = 200 * base::microsecond;
    static constexpr base::Nanoseconds least = -10 * base::millisecond;

    base::Nanoseconds balance_ = at_first;
};

}  // namespace railmux::messaging

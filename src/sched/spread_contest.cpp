#include "sched/spread_contest.hpp"

#include <algorithm>
#include <utility>

namespace railmux::sched {

void SpreadContest::went(std::uint64_t bytes, const Score& score, bool follows, base::Nanoseconds now) noexcept {
    now -= score.lulls;
    if (std::exchange(others_, score.others) != score.others) interrupt();
    // Light frames may have gone before it, or with it.
    if (static_cast<std::int32_t>(score.sent - std::exchange(handed_, score.handed)) >= 0) {
        begins(score, follows, now);
    } else if (++since_ >= longest_burst) {
        if (std::exchange(lone_, false)) interrupt();
    } else if (trying_ && usual_burst_ > 0 && now - begun_ > 2 * longest_burst_time * usual_burst_ &&
               now - begun_ > vain_after) {
        lost_ += now - begun_;
        end_trial(false, now);
    }
    window_.bytes += bytes;
    ++window_.went;
}

/// A burst, with the frame that goes now. All that went before has arrived.
void SpreadContest::begins(const Score& score, bool follows, base::Nanoseconds now) noexcept {
    const auto took = now - std::exchange(begun_, now);
    const auto lull = score.lulls - std::exchange(lulls_, score.lulls);
    const bool follows_a_burst = std::exchange(since_, 0) < longest_burst && took + lull <= longest_pause;
    if (!follows_a_burst || !std::exchange(lone_, true)) {
        interrupt();
        return begin_window(score);
    }
    if (!window_.open) return begin_window(score);
    window_.time += usual_burst_ > 0 ? std::min(took, longest_burst_time * usual_burst_) : took;
    ++window_.bursts;
    judge(score, follows, now);
}

void SpreadContest::begin_window(const Score& score) noexcept { window_ = {.open = true, .at = score}; }

/// There is nothing to compare with what comes now.
void SpreadContest::interrupt() noexcept {
    trying_ = false;
    last_ = 0;
    window_ = {};
}

void SpreadContest::forget() noexcept {
    home_ = home_before_ = tried_ = Spread::predicted;
    ways_ = {};
    usual_burst_ = 0;
    last_ = 0;
}

/// A message, there or back, of the window; 0: none went.
Ticks SpreadContest::cost(const Score& score) const noexcept {
    const std::uint32_t frames = (score.sent - window_.at.sent) + (score.received - window_.at.received);
    return frames == 0 ? 0 : to_ticks(window_.time) / static_cast<Ticks>(frames);
}

bool SpreadContest::over() const noexcept {
    return (window_.time >= window && window_.bursts >= window_bursts) ||
           (window_.time >= longest_window && window_.bursts >= settling_bursts);
}

bool SpreadContest::another_traffic() const noexcept {
    const auto bytes = window_.bytes / std::max<std::uint64_t>(window_.went, 1);
    return bytes > usual_bytes_ + usual_bytes_ / 4 || usual_bytes_ > bytes + bytes / 4;
}

void SpreadContest::judge(const Score& score, bool follows, base::Nanoseconds now) noexcept {
    if (trying_) return judge_trial(score, now);
    if (!over()) return;
    if (another_traffic()) {
        forget();
        usual_bytes_ = window_.bytes / window_.went;
    }
    const std::uint32_t heavy = score.heavy_received - window_.at.heavy_received;
    led_ = follows && std::uint64_t{8} * heavy >= window_.went;
    usual_burst_ = window_.time / window_.bursts;
    const auto takes = cost(score);
    begin_window(score);
    const auto before = std::exchange(last_, takes);
    if (led_ || takes == 0 || before == 0) return;
    const auto [less, more] = std::minmax(takes, before);
    if (more > less + less / unsteady_part) return;  // what rails had saved up is used up, or something else changes
    if (less > of(home_).takes + of(home_).takes / 4 && of(home_).takes > 0) {
        if (home_ != home_before_ && now < won_at_ + lasting) return go_back(less, now);
        forget();  // nothing is known of rails that have changed
    }
    of(home_).takes = (less + more) / 2;
    if (now < ended_ + between_trials) return;
    const auto way = next_way(score.rates_shown, now);
    if (way == home_) return;
    tried_ = way;
    trying_ = true;
    settling_ = settling_windows;
    won_ = 0;
    lost_ = 0;
}

/// The best of those that are known to be better than what is done, else the one that has been due for longest; or what is
/// done.
Spread SpreadContest::next_way(bool rates_shown, base::Nanoseconds now) const noexcept {
    auto best = home_;
    for (std::uint32_t i = 0; i < spreads; ++i) {
        const auto way = static_cast<Spread>(i);
        if (way == Spread::by_rate && !rates_shown) continue;
        if (of(way).takes > 0 && better(of(way).takes, of(best).takes)) best = way;
    }
    if (best != home_) return now >= ended_ + wait_if_better ? best : home_;
    auto next = home_;
    auto due = now;
    for (std::uint32_t i = 0; i < spreads; ++i) {
        const auto way = static_cast<Spread>(i);
        if (way == home_ || of(way).due > due || (way == Spread::by_rate && !rates_shown)) continue;
        if (next != home_ && of(way).due == due) continue;
        next = way;
        due = of(way).due;
    }
    return next;
}

void SpreadContest::judge_trial(const Score& score, base::Nanoseconds now) noexcept {
    const auto takes = cost(score);
    const auto usual = of(home_).takes;
    const bool settled = settling_ > 0 && window_.time >= settling && window_.bursts >= settling_bursts;
    const bool shows = tried_ == Spread::in_turn && (!score.rates_shown || score.rates_supposed);
    const bool much_worse = window_.time >= (shows ? shown_after : vain_after) &&
                            ((window_.bursts >= vain_bursts && takes > usual + usual / 2) ||
                             (window_.bursts >= very_vain_bursts && takes > 3 * usual));
    const bool as_before =
        !shows && settled && settling_ == 1 && of(tried_).takes > 0 && takes > usual + usual / unsteady_part;
    const bool vain = much_worse || as_before;
    const bool complete = settling_ > 0 ? settled : over();
    if (!vain && !complete) return;
    if (takes > usual) lost_ += window_.time - window_.time * usual / takes;
    if (!vain && another_traffic()) return interrupt();
    begin_window(score);
    if (!vain && settling_ > 0) {
        --settling_;
        return;
    }
    auto& way = of(tried_);
    way.takes = std::max(takes, won_ > 0 ? way.takes : 0);
    if (vain || !better(takes, usual)) return end_trial(false, now);
    if (++won_ == enough_windows) end_trial(true, now);
}

void SpreadContest::end_trial(bool won, base::Nanoseconds now) noexcept {
    trying_ = false;
    window_ = {};
    ended_ = now;
    if (won) {
        home_before_ = home_;
        won_at_ = now;
    }
    auto& other = of(won ? std::exchange(home_, tried_) : tried_);
    other.due = now + std::max(other.wait, std::min(wait_per_loss * lost_, longest_wait));
    other.wait = won ? first_wait : std::min(2 * other.wait, longest_wait);
    last_ = of(home_).takes;
}

/// What was gained has not lasted: it was what rails had saved up. That is no reason to try it soon.
void SpreadContest::go_back(Ticks takes, base::Nanoseconds now) noexcept {
    auto& vain = of(std::exchange(home_, home_before_));
    vain.takes = takes;
    vain.due = now + vain.wait;
    vain.wait = std::min(2 * vain.wait, longest_wait);
    ended_ = now;
    last_ = 0;
}

}  // namespace railmux::sched

#include "sched/contest.hpp"

#include <utility>

namespace railmux::sched {

namespace {

std::uint32_t heavy_received(std::span<const Candidate> candidates) noexcept {
    std::uint32_t frames = 0;
    for (const auto& candidate : candidates) frames += candidate.heavy_received;
    return frames;
}

}  // namespace

void Contest::went(std::size_t place, std::span<const Candidate> candidates, const Score& score, bool follows,
                   base::Nanoseconds now) noexcept {
    const bool paused = now - std::exchange(last_, now) > pause;
    ++window_.went;
    if (favoured_ != none && !fits(candidates[favoured_])) favoured_ = none;
    const auto way = heavy() ? favoured_ : place;
    if (way != used_ || paused || score.others != others_) {  // nothing to compare with
        // Heavy frames that fill a rail leave no credit: then the sender has to wait.
        if (trying_) end(paused && heavy() ? Outcome::worse : Outcome::interrupted, now);
        if (paused) due_ = heavy() ? std::max(due_, now + rules().first_wait) : now + wait_;
        if (paused && heavy() && led_) lead(false, candidates, now);
        return begin_anew(heavy() ? favoured_ : place, score.others);
    }
    if (led_) follow(candidates, now);
    if (const auto done = score.sent + score.received; std::exchange(done_, done) != done) {
        done_at_ = now;
        judge(candidates, score, follows, now);
    } else if (trying_ && now - done_at_ > pause) {
        end(Outcome::worse, now);
    }
}

void Contest::begin_anew(std::size_t way, std::uint32_t others) noexcept {
    used_ = way;
    others_ = others;
    before_ = last_rate_ = 0;
    window_ = {};
    first_ = true;
}

void Contest::begin_window(std::span<const Candidate> candidates, const Score& score, base::Nanoseconds now) noexcept {
    window_ = {.begin = now, .at = score, .heavy_received = heavy_received(candidates)};
}

void Contest::judge(std::span<const Candidate> candidates, const Score& score, bool follows,
                    base::Nanoseconds now) noexcept {
    if (trying_ && !settled(score, now)) return;
    if (window_.begin == 0) return begin_window(candidates, score, now);
    const auto rate = window_.rate(score, now);
    const auto time = now - window_.begin;
    const bool over = time >= rules().window;
    const bool led = follows && peer_leads(candidates, score);
    if (over) begin_window(candidates, score, now);
    if (trying_) {
        if (over || time >= rules().window / 4) judge_trial(rate, over, now);
        return;
    }
    if (!over) return;
    if (led != led_) {
        lead(led, candidates, now);
        if (heavy()) return;  // they go another way from now on
    }
    if (heavy() && std::exchange(first_, false)) return;
    if (heavy() && favoured_ != none) watch(rate, now);
    before_ = std::max(rate, last_rate_);
    const bool known = std::exchange(last_rate_, rate) > 0;
    if (known && !led_ && now >= due_) begin(candidates, score, now);
}

/// What brings less than half of what it brought before, for more than a window, may do so because of the rail: another way may
/// be better now.
void Contest::watch(std::uint64_t rate, base::Nanoseconds now) noexcept {
    const bool low = rate < usual_ / 2;
    low_ = low ? low_ + 1 : 0;
    if (low && low_ < enough_windows) return;
    usual_ = rate;
    if (!low) return;
    low_ = 0;
    last_rate_ = 0;
    due_ = std::min(due_, std::max(now, ended_ + rules().least_wait_when_vain));
}

void Contest::judge_trial(std::uint64_t rate, bool over, base::Nanoseconds now) noexcept {
    if (!over) {
        if (rate < before_ / 16 * rules().least_sixteenths) end(Outcome::worse, now);
    } else if (rate <= before_ + before_ / 16) {
        end(rate < before_ - before_ / 8 ? Outcome::worse : Outcome::vain, now);
    } else if (++won_ == enough_windows) {
        end(Outcome::won, now);
    }
}

bool Contest::fits(const Candidate& candidate) noexcept {
    const auto takes = candidate.cost.latency + times(trial_bytes, candidate.cost.per_byte);
    return !candidate.spare && takes <= to_ticks(longest_for_trial);
}

/// Heavy frames wait where they go until all that may be under way has gone: so only a rail that is about as fast as any. It
/// may seem somewhat slower than it is.
bool Contest::worth_trying(std::span<const Candidate> candidates, std::size_t place) const noexcept {
    const auto& candidate = candidates[place];
    if (!fits(candidate)) return false;
    const auto much_faster = [&](const Candidate& other) {
        return !other.spare && 3 * other.cost.per_byte < 2 * candidate.cost.per_byte;
    };
    return !heavy() || std::ranges::none_of(candidates, much_faster);
}

// --- Following -------------------------------------------------------------------------------------------------------

/// In the window that ends it sent an eighth of what we did at least; of heavy frames, which keep to one rail where they are
/// few, half as many.
bool Contest::peer_leads(std::span<const Candidate> candidates, const Score& score) const noexcept {
    if (!heavy()) return 8 * std::uint64_t{window_.received(score)} >= window_.sent(score);
    return 2 * std::uint64_t{heavy_received(candidates) - window_.heavy_received} >= window_.went;
}

void Contest::lead(bool led, std::span<const Candidate> candidates, base::Nanoseconds now) noexcept {
    led_ = led;
    if (!heavy()) return;
    favoured_ = none;
    shown_ = now;
    for (std::size_t i = 0; i < candidates.size(); ++i) heavy_received_[i] = candidates[i].heavy_received;
}

void Contest::follow(std::span<const Candidate> candidates, base::Nanoseconds now) noexcept {
    if (heavy()) return follow_heavy(candidates, now);
    follow_light(candidates);
}

/// Where the peer's last message came from.
void Contest::follow_light(std::span<const Candidate> candidates) noexcept {
    const auto recent = std::ranges::find(candidates, true, &Candidate::recent);
    const auto place = static_cast<std::size_t>(recent - candidates.begin());
    if (recent != candidates.end() && worth_trying(candidates, place)) favoured_ = place;
}

/// Where its heavy ones came from of late, if that was one rail.
void Contest::follow_heavy(std::span<const Candidate> candidates, base::Nanoseconds now) noexcept {
    if (now - shown_ < shown_in) return;
    std::uint32_t all = 0;
    std::uint32_t most = 0;
    std::size_t place = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto came = candidates[i].heavy_received - heavy_received_[i];
        all += came;
        if (came > most) most = came, place = i;
    }
    if (all < shown) {
        if (now - shown_ > pause) lead(false, candidates, now);
        return;
    }
    shown_ = now;
    for (std::size_t i = 0; i < candidates.size(); ++i) heavy_received_[i] = candidates[i].heavy_received;
    const bool single = most >= all - all / 16 && (place == favoured_ || worth_trying(candidates, place));
    favoured_ = single ? place : none;
}

// --- Trials ----------------------------------------------------------------------------------------------------------

bool Contest::settled(const Score& score, base::Nanoseconds now) const noexcept {
    const bool arrived = static_cast<std::int32_t>(score.sent - handed_) >= 0;
    return now >= settled_ && (arrived || !heavy());
}

/// After the way that was tried last comes the next one: the rails, and, where that may be several of them, what is predicted.
void Contest::begin(std::span<const Candidate> candidates, const Score& score, base::Nanoseconds now) noexcept {
    const auto ways = candidates.size() + (heavy() ? 1 : 0);
    for (std::size_t i = 1; i <= ways; ++i) {
        const auto next = (tried_ + i) % ways;
        const auto way = next == candidates.size() ? none : next;
        if (way == used_ || (way != none && !worth_trying(candidates, way))) continue;
        home_ = std::exchange(used_, way);
        favoured_ = way;
        tried_ = next;
        trying_ = true;
        won_ = 0;
        settled_ = now + rules().settling;
        handed_ = score.handed;
        window_ = {};
        return;
    }
}

void Contest::end(Outcome outcome, base::Nanoseconds now) noexcept {
    const bool won = outcome == Outcome::won;
    if (!won) favoured_ = used_ = home_;
    trying_ = false;
    before_ = last_rate_ = 0;
    window_ = {};
    if (won) {
        wait_ = rules().wait_when_won;
    } else if (outcome != Outcome::interrupted || !heavy()) {
        const bool worse = outcome == Outcome::worse;
        wait_ = std::max(std::min(2 * wait_, longest_wait),
                         worse ? rules().least_wait_when_worse : rules().least_wait_when_vain);
    }
    due_ = now + wait_;
    ended_ = now;
    usual_ = 0;
    low_ = 0;
    if (won && heavy() && favoured_ != none) tried_ = heavy_received_.size() - 1;  // next, as predicted again
}

}  // namespace railmux::sched

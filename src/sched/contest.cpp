#include "sched/contest.hpp"

#include <utility>

namespace railmux::sched {

namespace {

std::uint64_t brought(std::span<const Candidate> candidates) noexcept {
    std::uint64_t bytes = 0;
    for (const auto& candidate : candidates) bytes += candidate.brought;
    return bytes;
}

}  // namespace

void Contest::went(std::size_t place, std::uint64_t bytes, std::span<const Candidate> candidates, const Score& score,
                   bool follows, base::Nanoseconds now) {
    const bool paused = now - std::exchange(last_, now) > pause;
    note_kind(bytes, now);
    if (favoured_ != none && !fits(candidates[favoured_])) favoured_ = none;
    const auto way = favoured_ == none && heavy_ ? none : place;
    const auto other = heavy_ ? score.large : score.heavy;
    if (way != used_ || paused || other != other_) {  // nothing to compare with
        if (trying_) end(Outcome::vain, now);
        if (paused) due_ = now + wait();
        used_ = way;
        other_ = other;
        before_ = last_rate_ = 0;
        window_ = {};
        if (paused && heavy_ && std::exchange(led_, false)) favoured_ = none;
        return;
    }
    if (led_) favoured_ = way_of_peer(candidates, now);
    if (const auto told = score.sent + score.received; std::exchange(told_, told) != told) {
        told_at_ = now;
        judge(candidates, score, follows, now);
    } else if (trying_ && now - told_at_ > pause) {
        end(Outcome::worse, now);
    }
}

/// A rail that fares best for light ones may be a slow one.
void Contest::note_kind(std::uint64_t bytes, base::Nanoseconds now) noexcept {
    if (bytes > light_bytes) last_heavy_ = now;
    const bool heavy = last_heavy_ > 0 && now - last_heavy_ <= pause;
    if (heavy == heavy_) return;
    if (trying_) end(Outcome::vain, now);
    heavy_ = heavy;
    if (heavy) favoured_ = none, led_ = false;
    due_ = now + wait();
}

void Contest::judge(std::span<const Candidate> candidates, const Score& score, bool follows,
                    base::Nanoseconds now) noexcept {
    if (trying_ && !settled(score, now)) return;
    if (window_.begin == 0) return begin_window(candidates, score, now);
    const auto rate = window_.rate(score, now);
    const auto time = now - window_.begin;
    const bool over = time >= window();
    const bool follow = follows && led(candidates, score);
    if (over) begin_window(candidates, score, now);
    if (trying_) {
        if (over || time >= window() / 4) judge_trial(rate, over, now);
        return;
    }
    if (!over) return;
    if (follow && !led_) received_.clear();
    if (std::exchange(led_, follow) && !led_ && heavy_) favoured_ = none;
    before_ = std::max(rate, last_rate_);
    const bool known = std::exchange(last_rate_, rate) > 0;
    if (known && !led_ && now >= due_) begin(candidates, score, now);
}

void Contest::judge_trial(std::uint64_t rate, bool over, base::Nanoseconds now) noexcept {
    if (!over) {
        if (rate < (heavy_ ? before_ / 3 * 2 : before_ / 2)) end(Outcome::worse, now);
    } else if (rate <= before_ + before_ / 16) {
        end(rate < before_ - before_ / 8 ? Outcome::worse : Outcome::vain, now);
    } else if (++won_ == enough_windows) {
        end(Outcome::won, now);
    }
}

void Contest::begin_window(std::span<const Candidate> candidates, const Score& score, base::Nanoseconds now) noexcept {
    window_ = {now, score};
    brought_ = brought(candidates);
}

/// Whether, in the window that ends, the peer sent an eighth of what we did at least; its light messages do not show where it
/// sends others.
bool Contest::led(std::span<const Candidate> candidates, const Score& score) const noexcept {
    const auto received = std::uint64_t{window_.received(score)};
    return 8 * received >= window_.sent(score) &&
           (!heavy_ || brought(candidates) - brought_ > received * light_bytes / 2);
}

/// Whether the rail can take a trial.
bool Contest::fits(const Candidate& candidate) noexcept {
    const auto takes = candidate.cost.latency + times(trial_bytes, candidate.cost.per_byte);
    return !candidate.spare && takes <= to_ticks(longest_for_trial);
}

/// Others than light ones wait where they go until all that may be under way has gone: so only a rail that is about as fast as
/// any. It may seem somewhat slower than it is.
bool Contest::worth_trying(std::span<const Candidate> candidates, std::size_t place) const noexcept {
    const auto& candidate = candidates[place];
    if (!fits(candidate)) return false;
    const auto much_faster = [&](const Candidate& other) {
        return !other.spare && 3 * other.cost.per_byte < 2 * candidate.cost.per_byte;
    };
    return !heavy_ || std::ranges::none_of(candidates, much_faster);
}

/// Where its messages came from of late, if that was one rail; light ones of ours go over one in any case.
std::size_t Contest::way_of_peer(std::span<const Candidate> candidates, base::Nanoseconds now) {
    if (received_.size() != candidates.size()) {
        received_.clear();
        for (const auto& candidate : candidates) received_.push_back(candidate.received);
        shown_ = now;
        return favoured_;
    }
    if (heavy_ && now - shown_ < shown_in) return favoured_;
    std::uint32_t all = 0;
    std::uint32_t most = 0;
    auto place = favoured_;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto came = candidates[i].received - received_[i];
        all += came;
        if (came > most) most = came, place = i;
    }
    if (all < shown) return favoured_;
    shown_ = now;
    for (std::size_t i = 0; i < candidates.size(); ++i) received_[i] = candidates[i].received;
    if (!fits(candidates[place])) return favoured_;
    return most >= all - all / 8 || !heavy_ ? place : none;
}

bool Contest::settled(const Score& score, base::Nanoseconds now) const noexcept {
    const auto arrived = static_cast<std::int32_t>(score.sent - handed_) >= 0;
    return now >= settled_ && (arrived || !heavy_);
}

/// After the way that was tried last comes the next one: the rails, and, where that may be several of them, what is predicted.
void Contest::begin(std::span<const Candidate> candidates, const Score& score, base::Nanoseconds now) noexcept {
    const auto ways = candidates.size() + (heavy_ ? 1 : 0);
    for (std::size_t i = 1; i <= ways; ++i) {
        const auto next = (tried_ + i) % ways;
        const auto way = next == candidates.size() ? none : next;
        if (way == used_ || (way != none && !worth_trying(candidates, way))) continue;
        home_ = std::exchange(used_, way);
        favoured_ = way;
        tried_ = next;
        trying_ = true;
        won_ = 0;
        settled_ = now + settling;
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
    auto& wait = heavy_ ? heavy_wait_ : light_wait_;
    if (won) {
        wait = heavy_ ? heavy_wait_when_won : first_light_wait;
    } else {
        wait = heavy_ && outcome == Outcome::worse ? longest_wait : std::min(2 * wait, longest_wait);
    }
    due_ = now + wait;
}

}  // namespace railmux::sched

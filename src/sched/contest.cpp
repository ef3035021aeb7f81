#include "sched/contest.hpp"

#include <utility>

namespace railmux::sched {

void Contest::went(std::size_t place, std::span<const Candidate> candidates, const Score& score, bool follows,
                   base::Nanoseconds now) noexcept {
    const bool paused = now - std::exchange(last_, now) > pause;
    if (favoured_ != none && !worth_trying(candidates[favoured_])) favoured_ = none;
    if (place != used_ || paused || score.large != window_.at.large) {  // nothing to compare with
        if (trying()) end(false, score, now);
        if (paused) due_ = now + wait_;
        used_ = place;
        before_ = last_rate_ = 0;
        window_ = {now, score};
        return;
    }
    if (led_) follow(candidates);
    if (trying() && now < settled_) {
        window_ = {now, score};
        return;
    }
    const auto rate = window_.rate(score, now);
    const auto time = now - window_.begin;
    if (trying() && time >= window / 4 && rate < before_ / 2) return end(false, score, now);
    if (time < window) return;
    const bool led = follows && 8 * std::uint64_t{window_.received(score)} >= window_.sent(score);
    window_ = {now, score};
    if (trying()) {
        if (rate <= before_ + before_ / 16) return end(false, score, now);
        if (++won_ == enough_windows) end(true, score, now);
        return;
    }
    led_ = led;
    before_ = std::max(rate, last_rate_);
    const bool known = std::exchange(last_rate_, rate) > 0;
    if (known && !led_ && now >= due_) begin(candidates, now);
}

bool Contest::worth_trying(const Candidate& candidate) noexcept {
    const auto takes = candidate.cost.latency + times(trial_bytes, candidate.cost.per_byte);
    return !candidate.spare && takes <= to_ticks(window / 2);
}

/// Where the peer's last message came from.
void Contest::follow(std::span<const Candidate> candidates) noexcept {
    const auto recent = std::ranges::find(candidates, true, &Candidate::recent);
    if (recent != candidates.end() && worth_trying(*recent))
        favoured_ = static_cast<std::size_t>(recent - candidates.begin());
}

void Contest::begin(std::span<const Candidate> candidates, base::Nanoseconds now) noexcept {
    for (std::size_t i = 1; i <= candidates.size(); ++i) {
        const auto place = (tried_ + i) % candidates.size();
        if (place == used_ || !worth_trying(candidates[place])) continue;
        home_ = std::exchange(used_, place);
        favoured_ = tried_ = place;
        won_ = 0;
        settled_ = now + settling;
        return;
    }
}

void Contest::end(bool won, const Score& score, base::Nanoseconds now) noexcept {
    if (!won) favoured_ = used_ = home_;
    home_ = none;
    before_ = last_rate_ = 0;
    window_ = {now, score};
    wait_ = won ? first_wait : std::min(2 * wait_, longest_wait);
    due_ = now + wait_;
}

}  // namespace railmux::sched

#include "sched/pace.hpp"

#include <cstdlib>

namespace railmux::sched {

void Pace::sent(std::uint64_t bytes, base::Nanoseconds now) noexcept {
    if (backlog_ == 0) {
        // A backlog that was acknowledged at one stroke left the rail idle for a moment only: what it proved still holds.
        if (now - last_ > idle_time) busy_bytes_ = 0;
        last_ = now;
        counts_ = false;
    }
    backlog_ += bytes;
}

void Pace::account(base::Nanoseconds now, base::Nanoseconds busy) noexcept {
    const bool lasts =
        static_cast<Ticks>(std::min<std::uint64_t>(backlog_, backlog_bytes)) * per_byte_ >= to_ticks(backlog_time);
    const bool backlogged = backlog_ >= backlog_bytes || lasts;
    if (counts_ && backlogged) add(now - last_, pending_, true, busy);
    busy_bytes_ += pending_;
    pending_ = 0;
    last_ = now;
    counts_ = backlogged;
}

void Pace::lone(std::uint64_t bytes, base::Nanoseconds service, Ticks thought, base::Nanoseconds busy) noexcept {
    const auto count = static_cast<Ticks>(bytes);
    const bool confirms = std::abs(to_ticks(service) / count - thought) < to_ticks(look_time) / count;
    add(confirms ? count * thought / ticks_per_ns : service, bytes, false, busy);
}

void Pace::add(base::Nanoseconds time, std::uint64_t bytes, bool sure, base::Nanoseconds busy) noexcept {
    time_ += time;
    bytes_ += bytes;
    const bool first = window_count_ == 0;
    const bool long_enough = time_ >= (first ? first_window_time : window_time) && bytes_ >= window_bytes;
    if (!long_enough && !(first && bytes_ >= first_window_bytes)) return;
    end_window(to_ticks(time_) / static_cast<Ticks>(bytes_), sure, busy);
    time_ = 0;
    bytes_ = 0;
}

/// A window that is `sure` counts even if it is the first.
void Pace::end_window(Ticks rate, bool sure, base::Nanoseconds busy) noexcept {
    rate = std::clamp<Ticks>(rate, 1, slowest);
    if (aged(busy)) windows_.fill(per_byte(busy, rate));  // old windows should not outvote the new one
    learnt_ = busy;
    windows_[window_count_++ % windows_.size()] = rate;
    if (window_count_ < windows_.size()) {
        if (sure) per_byte_ = rate;
        return;
    }
    const auto [a, b, c] = windows_;
    per_byte_ = std::max(std::min(a, b), std::min(std::max(a, b), c));
}

void Echo::heard(base::Nanoseconds round_trip, base::Nanoseconds now) noexcept {
    if (now >= window_end_) {
        // A window longer ago than one is forgotten.
        const bool next = now < window_end_ + window;
        before_ = next ? latest_ : unknown;
        before_count_ = next ? latest_count_ : 0;
        latest_ = unknown;
        latest_count_ = 0;
        window_end_ = now + window;
    }
    ++latest_count_;
    latest_ = std::min(latest_, std::max<base::Nanoseconds>(round_trip, 1));
}

}  // namespace railmux::sched

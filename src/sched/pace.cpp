#include "sched/pace.hpp"

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

void Pace::account(base::Nanoseconds now) noexcept {
    if (counts_) {
        time_ += now - last_;
        bytes_ += pending_;
        const bool first = window_count_ == 0;
        const bool long_enough = time_ >= (first ? first_window_time : window_time) && bytes_ >= window_bytes;
        if (long_enough || (first && bytes_ >= first_window_bytes)) end_window();
    }
    busy_bytes_ += pending_;
    pending_ = 0;
    last_ = now;
    const bool long_enough =
        static_cast<Ticks>(std::min<std::uint64_t>(backlog_, backlog_bytes)) * per_byte_ >= to_ticks(backlog_time);
    counts_ = backlog_ >= backlog_bytes || long_enough;
}

void Pace::end_window() noexcept {
    const auto rate = std::clamp<Ticks>(to_ticks(time_) / static_cast<Ticks>(bytes_), 1, slowest);
    windows_[window_count_++ % windows_.size()] = rate;
    time_ = 0;
    bytes_ = 0;
    if (window_count_ < windows_.size()) {
        per_byte_ = rate;
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

#include "sched/pace.hpp"

namespace railmux::sched {

void Pace::sent(std::uint64_t bytes, base::Nanoseconds now) noexcept {
    if (backlog_ == 0) {
        last_ = now;
        counts_ = false;
        busy_bytes_ = 0;
    }
    backlog_ += bytes;
}

void Pace::account(base::Nanoseconds now) noexcept {
    if (counts_) {
        time_ += now - last_;
        bytes_ += pending_;
        if (window_over()) end_window();
    }
    busy_bytes_ += pending_;
    pending_ = 0;
    last_ = now;
    const bool long_enough =
        static_cast<Ticks>(std::min<std::uint64_t>(backlog_, backlog_bytes)) * per_byte_ >= to_ticks(backlog_time);
    counts_ = backlog_ >= backlog_bytes || long_enough;
}

bool Pace::window_over() const noexcept {
    if (bytes_ < window_bytes) return false;
    if (window_count_ == 0) return time_ >= first_window_time || bytes_ >= first_window_bytes;
    return time_ >= window_time;
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

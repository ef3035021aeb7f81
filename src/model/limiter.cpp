#include "model/limiter.hpp"

#include <algorithm>

namespace railmux::model {

Limiter::Limiter(double ns_per_byte, double share) noexcept : share_(share) { set_rate(ns_per_byte); }

void Limiter::set_rate(double ns_per_byte) noexcept {
    constexpr double most = 1e15;  // keeps the cast below defined for a G of 0
    limit_ = static_cast<std::uint64_t>(std::min(most, share_ * 1e9 / std::max(ns_per_byte, 1e-9)));
}

std::optional<base::Nanoseconds> Limiter::when(std::uint64_t bytes, base::Nanoseconds now) {
    if (bytes > limit_) return std::nullopt;
    forget(now);
    auto room = limit_ > total_ ? limit_ - total_ : 0;
    auto at = now;
    for (const auto& entry : recent_) {
        if (room >= bytes) break;
        room += entry.bytes;
        at = entry.at + base::second;
    }
    return at;
}

void Limiter::sent(std::uint64_t bytes, base::Nanoseconds now) {
    forget(now);
    recent_.push_back({now, bytes});
    total_ += bytes;
}

void Limiter::forget(base::Nanoseconds now) {
    while (!recent_.empty() && recent_.front().at + base::second <= now) {
        total_ -= recent_.front().bytes;
        recent_.pop_front();
    }
}

}  // namespace railmux::model

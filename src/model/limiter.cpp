#include "model/limiter.hpp"

#include <algorithm>

namespace railmux::model {

std::uint64_t Limiter::most(double ns_per_byte) noexcept {
    constexpr double limit = 1e15;  // keeps the cast below defined for a G of 0
    return static_cast<std::uint64_t>(std::min(limit, share * 1e9 / std::max(ns_per_byte, 1e-9)));
}

std::optional<base::Nanoseconds> Limiter::when(std::uint64_t bytes, std::uint64_t most, base::Nanoseconds now) {
    if (bytes > most) return std::nullopt;
    forget(now);
    auto left = total_;  // what was sent may be more than `most`, where that was thought to be more
    auto at = now;
    for (const auto& entry : recent_) {
        if (left <= most - bytes) break;
        left -= entry.bytes;
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

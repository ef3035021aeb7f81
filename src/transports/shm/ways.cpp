#include "transports/shm/ways.hpp"

#include <algorithm>

namespace railmux::transports::shm {

bool Timed::add(base::Nanoseconds took, std::uint64_t bytes) noexcept {
    last_[count_++ % window] = static_cast<float>(std::max<base::Nanoseconds>(took, 0)) / static_cast<float>(bytes);
    if (count_ % window != 0) return false;
    auto sorted = last_;
    std::ranges::nth_element(sorted, sorted.begin() + window / 2);
    median_ = sorted[window / 2];
    return true;
}

std::optional<std::uint64_t> Ways::fetch_from(double call) const noexcept {
    const auto fetched = fetch.per_byte(), from_ring = ring.per_byte();
    if (!fetched || !from_ring) return std::nullopt;
    return fetch_pays_from(call, *fetched, *from_ring);
}

/// By puts of 64 KiB: of larger ones few go by in the time, of smaller ones the two ways take about the same.
std::uint32_t Ways::try_every(double call) const noexcept {
    constexpr double bytes = 64 << 10;
    constexpr double worth = 0.005;  // of all the time
    const auto from_ring = ring.per_byte().value_or(0) * bytes;
    const auto fetched = call + fetch.per_byte().value_or(0) * bytes;
    const auto [best, other] = std::minmax(from_ring, fetched);
    const auto every = best > 0 ? (other - best) / best / worth : 0;
    return static_cast<std::uint32_t>(std::clamp(every, double{Trying::least_every}, double{Trying::most_every}));
}

}  // namespace railmux::transports::shm

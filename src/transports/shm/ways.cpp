#include "transports/shm/ways.hpp"

#include <algorithm>
#include <cmath>

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

std::uint32_t Ways::try_apart(double call) const noexcept {
    constexpr double bytes = Trying::tried_kib << 10;
    constexpr double worth = 0.005;  // of all the time
    const auto from_ring = ring.per_byte().value_or(0) * bytes;
    const auto fetched = call + fetch.per_byte().value_or(0) * bytes;
    constexpr double most = ~std::uint32_t{0};
    return static_cast<std::uint32_t>(std::min(std::abs(from_ring - fetched) / worth, most));
}

}  // namespace railmux::transports::shm

#include "sched/water_fill.hpp"

#include <algorithm>

namespace railmux::sched {

void WaterFill::add(std::size_t place, Ticks offset, Ticks per_byte, std::uint64_t smallest) {
    per_byte = std::max<Ticks>(per_byte, 1);
    const auto width = std::max<std::int64_t>((std::int64_t{1} << width_bits) / per_byte, 1);
    const Vessel vessel{place, offset, per_byte, width, smallest};
    // Behind those with the same offset, so that rails that are equal are used in the order of the candidates.
    const auto at = std::upper_bound(vessels_.begin(), vessels_.end(), offset,
                                     [](Ticks value, const Vessel& other) { return value < other.offset; });
    vessels_.insert(at, vessel);
}

void WaterFill::raise(std::uint64_t bytes) noexcept {
    Wide volume = static_cast<Wide>(bytes) << width_bits;
    Wide width = 0;
    for (filled_ = 0; filled_ < vessels_.size(); ++filled_) {
        const auto& next = vessels_[filled_];
        if (filled_ > 0 && next.offset >= end_) break;
        volume += static_cast<Wide>(next.offset) * next.width;
        width += next.width;
        end_ = volume / width;
    }
}

Wide WaterFill::fill(std::uint64_t bytes) noexcept {
    raise(bytes);
    if (!any_too_small()) return end_;
    // A share that is too small may be that of a fast rail behind its own queue: then it is better to leave out others, so that
    // it gets enough. Or it may not. Neither is always right, and both are cheap.
    all_ = vessels_;
    leave_out(bytes, false);
    const auto without_small = end_;
    vessels_.swap(all_);
    raise(bytes);
    leave_out(bytes, true);
    if (without_small > end_) return end_;
    vessels_.swap(all_);
    raise(bytes);
    return end_;
}

void WaterFill::leave_out(std::uint64_t bytes, bool also_large) noexcept {
    for (; any_too_small(); raise(bytes)) {
        vessels_.erase(vessels_.begin() + static_cast<std::ptrdiff_t>(least_missed(also_large)));
    }
}

bool WaterFill::any_too_small() const noexcept {
    if (filled_ == 1) return false;
    const auto used = std::span(vessels_).first(filled_);
    return std::ranges::any_of(used, [&](const Vessel& vessel) { return too_small(vessel); });
}

/// Of the used ones whose share is too small, or of all, the one whose share takes the others the least time.
std::size_t WaterFill::least_missed(bool also_large) const noexcept {
    Wide width = 0;
    for (std::size_t i = 0; i < filled_; ++i) width += vessels_[i].width;
    std::size_t least = 0;
    Wide least_lost = -1;
    for (std::size_t i = 0; i < filled_; ++i) {
        const auto& vessel = vessels_[i];
        if (!also_large && !too_small(vessel)) continue;
        const auto lost = (static_cast<Wide>(share(vessel)) << width_bits) / (width - vessel.width);
        if (least_lost >= 0 && lost > least_lost) continue;  // of equal ones the last
        least = i;
        least_lost = lost;
    }
    return least;
}

WaterFill::Single WaterFill::best_single(std::uint64_t bytes) const noexcept {
    Single best;
    for (std::size_t i = 0; i < filled_; ++i) {
        const Wide end = vessels_[i].offset + static_cast<Wide>(bytes) * vessels_[i].per_byte;
        if (i == 0 || end < best.end) best = {vessels_[i].place, end};
    }
    return best;
}

void WaterFill::pour(std::uint64_t bytes, std::span<std::uint64_t> shares) const noexcept {
    std::uint64_t left = bytes;
    std::size_t largest = vessels_.front().place;
    for (std::size_t i = 0; i < filled_; ++i) {
        auto& mine = shares[vessels_[i].place];
        mine = std::min(share(vessels_[i]), left);
        left -= mine;
        if (mine > shares[largest]) largest = vessels_[i].place;
    }
    shares[largest] += left;  // what rounding left over
}

}  // namespace railmux::sched

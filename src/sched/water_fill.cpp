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
    for (raise(bytes); filled_ > 1;) {
        std::size_t least = filled_;
        for (std::size_t i = 0; i < filled_; ++i) {
            if (share(vessels_[i]) >= vessels_[i].smallest) continue;
            if (least == filled_ || share(vessels_[i]) <= share(vessels_[least])) least = i;  // of equal ones the last
        }
        if (least == filled_) break;
        const auto left_out = vessels_[least];
        const auto with = end_;
        vessels_.erase(vessels_.begin() + static_cast<std::ptrdiff_t>(least));
        raise(bytes);
        // What is little for a fast rail, behind its queue, may take the others long.
        const auto saved = static_cast<Wide>(left_out.smallest) * left_out.per_byte / worth_part;
        if (end_ - with <= saved) continue;
        add(left_out.place, left_out.offset, left_out.per_byte, 0);
        raise(bytes);
    }
    return end_;
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

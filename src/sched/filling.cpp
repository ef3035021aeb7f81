#include "sched/filling.hpp"

#include <algorithm>

namespace railmux::sched {

void Filling::add(std::size_t place, Ticks offset, Ticks per_byte) noexcept {
    const Rail rail{static_cast<double>(offset), 1 / static_cast<double>(std::max<Ticks>(per_byte, 1)), place};
    const double alone = rail.offset + static_cast<double>(bytes_) / rail.rate;
    if (count_ == 0 || alone < alone_end_) {
        alone_ = place;
        alone_end_ = alone;
    }
    auto at = count_;
    if (count_ == most_rails) {
        if (rail.offset >= rails_.back().offset) return;
        --at;
    } else {
        ++count_;
    }
    for (; at > 0 && rails_[at - 1].offset > rail.offset; --at) rails_[at] = rails_[at - 1];
    rails_[at] = rail;
}

void Filling::fill() noexcept {
    double weighted = 0;
    double rate = 0;
    for (used_ = 0; used_ < count_ && (used_ == 0 || rails_[used_].offset < end_); ++used_) {
        weighted += rails_[used_].offset * rails_[used_].rate;
        rate += rails_[used_].rate;
        end_ = (static_cast<double>(bytes_) + weighted) / rate;
    }
}

bool Filling::drop_smaller_than(std::uint64_t least) noexcept {
    if (used_ < 2) return false;
    const auto smallest = std::min_element(rails_.begin(), rails_.begin() + static_cast<std::ptrdiff_t>(used_),
                                           [&](const Rail& a, const Rail& b) { return share(a) < share(b); });
    if (share(*smallest) >= static_cast<double>(least)) return false;
    std::move(smallest + 1, rails_.begin() + static_cast<std::ptrdiff_t>(count_), smallest);
    --count_;
    return true;
}

bool Filling::beats_one_rail_by(std::uint32_t percent) const noexcept {
    return end_ < alone_end_ * (1 - percent / 100.0);
}

void Filling::shares(std::span<std::uint64_t> shares) const noexcept {
    std::uint64_t given = 0;
    std::size_t largest = rails_[0].place;
    for (std::size_t i = 0; i < used_; ++i) {
        auto& to = shares[rails_[i].place];
        to = std::min(static_cast<std::uint64_t>(share(rails_[i])), bytes_ - given);
        given += to;
        if (to > shares[largest]) largest = rails_[i].place;
    }
    shares[largest] += bytes_ - given;
}

}  // namespace railmux::sched

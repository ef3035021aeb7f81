#include "transports/sim/timing.hpp"

#include <algorithm>
#include <cmath>

namespace railmux::transports::sim {

Ticks to_ticks(double ns) noexcept { return std::llround(ns * static_cast<double>(ticks_per_ns)); }

Ticks Overhead::of(std::uint64_t bytes) const noexcept {
    return to_ticks(ns + ns_per_byte * static_cast<double>(bytes));
}

const Range& Timing::range(std::uint64_t bytes) const noexcept {
    for (const auto& range : ranges) {
        if (bytes <= range.up_to_bytes) return range;
    }
    return ranges.back();
}

Timing simple_timing(double L, double o_s, double o_r, double g, double G) {
    Timing timing;
    timing.ranges = {Range{.L = L, .o_s = {.ns = o_s}, .o_r = {.ns = o_r}, .g = g, .G = G}};
    return timing;
}

Ticks Bucket::pass(Ticks start, std::uint64_t bytes, const Range& range, const Timing& timing) noexcept {
    const auto size = static_cast<double>(std::max<std::uint64_t>(bytes, 1) - 1);
    if (timing.burst_bytes == 0 || range.G <= timing.burst_G) return to_ticks(size * range.G);
    const double idle_ns = static_cast<double>(start - filled_at_) / static_cast<double>(ticks_per_ns);
    tokens_ = std::min(static_cast<double>(timing.burst_bytes), tokens_ + idle_ns / range.G);
    // While x bytes leave at burst_G the bucket loses x and gains x burst_G / G; it is empty after:
    const double fast = std::min(size, tokens_ / (1 - timing.burst_G / range.G));
    const double ns = fast * timing.burst_G + (size - fast) * range.G;
    tokens_ = std::max(0.0, tokens_ - fast * (1 - timing.burst_G / range.G));
    const auto ticks = to_ticks(ns);
    filled_at_ = start + ticks;  // what comes in meanwhile is counted above
    return ticks;
}

}  // namespace railmux::transports::sim

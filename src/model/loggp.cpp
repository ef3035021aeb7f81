#include <railmux/loggp.hpp>

#include <algorithm>
#include <cmath>

namespace railmux {

namespace {

constexpr double max_ns = 1e13;  // almost three hours: more is no network's time

bool is_time(Nanos time) noexcept { return time.count() >= 0 && time.count() <= max_ns; }  // false for NaN
bool is_slope(double ns) noexcept { return std::abs(ns) <= max_ns; }
bool is_linear(const Linear& value) noexcept { return is_time(value.fixed) && is_slope(value.per_byte.ns); }
bool is_latency(const Linear& value) noexcept { return is_slope(value.fixed.count()) && is_slope(value.per_byte.ns); }
bool is_share(double value) noexcept { return value >= 0 && value <= 1; }

bool is_range(const ProtocolRange& range) noexcept {
    const auto& c = range.confidence;
    return is_latency(range.L) && is_linear(range.o_s) && is_linear(range.o_r) && is_time(range.g) &&
           is_slope(range.G.ns) && range.G.ns >= 0 && is_share(c.L) && is_share(c.o_s) && is_share(c.o_r) &&
           is_share(c.g) && is_share(c.G);
}

}  // namespace

double Confidence::least() const noexcept { return std::min({L, o_s, o_r, g, G}); }

const ProtocolRange& LogGP::range(std::uint64_t bytes) const noexcept {
    for (const auto& range : ranges) {
        if (bytes <= range.up_to_bytes) return range;
    }
    return ranges.back();
}

Prediction LogGP::predict(std::uint64_t bytes) const noexcept {
    const auto size = std::max<std::uint64_t>(bytes, 1);
    const auto& r = range(size);
    const auto transfer = r.G.of(size - 1);
    const auto o_s = r.o_s.of(size);
    // A part per byte may be negative where a fit is a little off; a time may not.
    return {.delivery = std::max(Nanos(0), r.L.of(size) + o_s + r.o_r.of(size) + transfer + jitter),
            .rail = r.g + transfer,
            .sender_cpu = std::max(Nanos(0), o_s)};
}

double LogGP::confidence() const noexcept {
    double least = 1;
    for (const auto& range : ranges) least = std::min(least, range.confidence.least());
    return least;
}

bool valid(const LogGP& model) noexcept {
    if (model.ranges.empty() || model.ranges.size() > LogGP::max_ranges) return false;
    if (!is_time(model.half_round_trip) || !is_time(model.jitter)) return false;
    if (model.ranges.back().up_to_bytes != std::numeric_limits<std::uint64_t>::max()) return false;
    const auto ascending = [](const auto& a, const auto& b) { return a.up_to_bytes < b.up_to_bytes; };
    for (std::size_t i = 1; i < model.ranges.size(); ++i) {
        if (!ascending(model.ranges[i - 1], model.ranges[i])) return false;
    }
    return std::ranges::all_of(model.ranges, is_range);
}

}  // namespace railmux

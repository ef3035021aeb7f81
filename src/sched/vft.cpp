#include "sched/vft.hpp"

#include <algorithm>

#include "sched/filling.hpp"

namespace railmux::sched {

namespace {
constexpr std::uint64_t same_size_bytes = 1024;
// Latencies that differ by less are the same: that is how late one looks.
constexpr Ticks same_latency = to_ticks(base::microsecond);
// Acknowledgements are kept back for up to 100 us, and looked for between other things.
constexpr base::Nanoseconds acknowledged_within = 250 * base::microsecond;

/// bytes * ticks, kept far from overflow: what takes longer than a day is not distinguished.
Ticks times(std::uint64_t bytes, Ticks per_byte) noexcept {
    constexpr Ticks longest = to_ticks(86'400 * base::second);
    Ticks product = 0;
    if (__builtin_mul_overflow(bytes, per_byte, &product) || product > longest) return longest;
    return product;
}
}  // namespace

Ticks Vft::idle_delivery(const Cost& cost, std::uint64_t bytes) const noexcept {
    switch (options_.stage) {
        case VftStage::same_size: return times(same_size_bytes, cost.per_byte);
        case VftStage::size_aware: return times(bytes, cost.per_byte);
        case VftStage::pause_aware: return cost.gap + times(bytes, cost.per_byte);
        case VftStage::latency_aware: return cost.latency + times(bytes, cost.per_byte);
        case VftStage::overlap_aware: break;
    }
    return cost.latency + times(bytes, cost.slope);
}

/// How long until the rail is free: what its clock says, or what is known to be on it, whichever is less. The clock never
/// stands behind now.
Ticks Vft::wait(const Candidate& candidate, Ticks now) const noexcept {
    const auto clock = std::max<Ticks>(free_[candidate.rail] - now, 0);
    if (candidate.backlog == 0) return 0;
    const auto known = std::min(clock, candidate.cost.gap + times(candidate.backlog, candidate.cost.per_byte));
    // A rail that has been silent for longer than acknowledgements take is slower than thought; what has lasted so long is
    // expected to last as long again.
    return std::max(known, to_ticks(candidate.silent - acknowledged_within) - 2 * candidate.cost.latency);
}

Ticks Vft::delivery(const Candidate& candidate, std::uint64_t bytes, base::Nanoseconds now) const noexcept {
    return wait(candidate, to_ticks(now)) + idle_delivery(candidate.cost, bytes);
}

std::size_t Vft::choose(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now) noexcept {
    // The fastest rail, were all idle, is left only for a clear gain: predictions are not that good, and messages that
    // stay on one rail need no reordering.
    std::size_t fastest = 0;
    std::size_t first = 0;
    Ticks fastest_idle = 0;
    Ticks fastest_delivery = 0;
    Ticks first_delivery = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        auto idle = idle_delivery(candidates[i].cost, bytes);
        const auto delivered = wait(candidates[i], to_ticks(now)) + idle;
        // Of rails that are about equal, the one that both sides look at already: what is not looked at is not polled.
        if (candidates[i].recent) idle -= idle / 100 * options_.margin_percent + same_latency;
        if (i == 0 || idle < fastest_idle) {
            fastest = i;
            fastest_idle = idle;
            fastest_delivery = delivered;
        }
        if (i == 0 || delivered < first_delivery) {
            first = i;
            first_delivery = delivered;
        }
    }
    const auto margin = fastest_delivery / 100 * options_.margin_percent;
    return first_delivery < fastest_delivery - margin ? first : fastest;
}

void Vft::charge(const Candidate& candidate, std::uint64_t bytes, base::Nanoseconds now) noexcept {
    const auto start = to_ticks(now) + wait(candidate, to_ticks(now));
    const auto counted = options_.stage == VftStage::same_size ? same_size_bytes : bytes;
    const auto gap =
        options_.stage == VftStage::same_size || options_.stage == VftStage::size_aware ? Ticks{0} : candidate.cost.gap;
    free_[candidate.rail] = start + std::max(gap, times(counted, candidate.cost.per_byte));
}

void Vft::split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
                std::span<std::uint64_t> shares) noexcept {
    std::fill(shares.begin(), shares.end(), 0);
    Filling filling(bytes);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto& c = candidates[i];
        const auto before = wait(c, to_ticks(now)) + times(c.claimed, c.cost.per_byte);
        filling.add(i, before + c.cost.latency, c.cost.per_byte);
    }
    filling.fill();
    while (filling.drop_smaller_than(options_.smallest_share)) filling.fill();
    if (filling.used() == 1 || !filling.beats_one_rail_by(options_.margin_percent)) {
        shares[filling.best_alone()] = bytes;
        return;
    }
    filling.shares(shares);
}

}  // namespace railmux::sched

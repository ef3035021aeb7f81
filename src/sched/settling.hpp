// What acknowledgements that came in together say of the rails, and what a policy is to know of them then: for a process and
// for the simulated one (world.hpp).
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>

#include "base/clock.hpp"
#include "sched/node_load.hpp"
#include "sched/pace.hpp"
#include "sched/policy.hpp"

namespace railmux::sched {

/// Time in which there was traffic.
class BusyClock {
public:
    void acknowledged(base::Nanoseconds now) noexcept {
        if (now - last_ < pause) busy_ += now - last_;
        last_ = now;
    }
    [[nodiscard]] base::Nanoseconds time() const noexcept { return busy_; }

private:
    // Without acknowledgements for so long there was no traffic.
    static constexpr base::Nanoseconds pause = 10 * base::millisecond;

    base::Nanoseconds last_ = 0;
    base::Nanoseconds busy_ = 0;
};

/// Once for all that came in together, which has been counted as delivered: how it was spread over several acknowledgements
/// says nothing. `rails`: where it was, bit by bit.
inline void settle(std::span<Pace> paces, std::uint64_t rails, NodeLoad& node, BusyClock& busy, base::Nanoseconds now,
                   const Seen& seen = {}) noexcept {
    busy.acknowledged(now);
    node.look(now, paces);
    for (; rails != 0; rails &= rails - 1) {
        const auto rail = static_cast<std::uint32_t>(std::countr_zero(rails));
        auto& pace = paces[rail];
        if (!pace.unsettled()) continue;
        pace.settle(now, busy.time(), node.others(rail), seen);
        node.left(rail, pace.backlog(), now);
    }
}

/// What is on the rail of a candidate, and for how long.
inline void look_at_backlog(Candidate& candidate, const Pace& pace, const NodeLoad& node,
                            base::Nanoseconds looked) noexcept {
    candidate.backlog = pace.backlog() + node.others(candidate.rail).backlog;
    candidate.silent = pace.silent(looked);
    candidate.saves_up = pace.saves_up(looked);
}

/// What is to be known of a candidate whose link costs so much, but for what traffic has shown since (Pace::correct).
inline void look_at(Candidate& candidate, const Cost& cost, const Pace& pace, const NodeLoad& node,
                    base::Nanoseconds looked) noexcept {
    candidate.cost = cost;
    look_at_backlog(candidate, pace, node, looked);
}

/// The least G of those that are worth anything.
[[nodiscard]] inline Ticks least_per_byte(std::span<const Candidate> candidates) noexcept {
    auto least = std::numeric_limits<Ticks>::max();
    for (const auto& candidate : candidates) {
        if (!candidate.spare) least = std::min(least, candidate.cost.per_byte);
    }
    return least;
}

/// What is known of a rail by trains only may be wrong by half. If it has 4/9 of the best rate at least, it is taken for as
/// fast as the best of those that traffic has shown better. Where there is none nobody knows which is faster, so all such
/// rails are taken for as fast as the best. Rates that are mere bounds say less: of two equal rails the one that got the
/// longer bursts has the lower bound, by 4 where it got most of 8 messages, and none says what it sustains. The same goes for
/// what a byte takes besides, and for latencies as far as traffic allows: a probe may have been held up, and then nothing would
/// be sent that shows it.
inline void even_out(std::span<Candidate> candidates, std::span<const Pace> paces, base::Nanoseconds busy) noexcept {
    const auto doubtful = [&](const Candidate& candidate) {
        return candidate.bounded || paces[candidate.rail].doubtful();
    };
    if (candidates.size() < 2 || std::ranges::none_of(candidates, doubtful)) return;
    const auto best = least_per_byte(candidates);
    const bool best_bounded = std::ranges::any_of(
        candidates, [&](const Candidate& each) { return each.bounded && each.cost.per_byte == best; });
    const auto alike = [&](const Candidate& candidate) {
        const auto most = candidate.bounded || best_bounded ? 4 * best : 2 * best + best / 4;
        return !candidate.spare && candidate.cost.per_byte <= most;
    };
    constexpr auto none = std::numeric_limits<Ticks>::max();
    auto known = none;
    for (const auto& candidate : candidates) {
        const auto& pace = paces[candidate.rail];
        const bool sure = pace.per_byte() > 0 && !doubtful(candidate) && !pace.tried(busy);
        if (alike(candidate) && sure) known = std::min(known, candidate.cost.per_byte);
    }
    const auto common = known == none ? best : known;
    const auto besides_of = [](const Cost& cost) { return std::max<Ticks>(cost.slope - cost.per_byte, 0); };
    auto besides = none;
    int count = 0;
    for (const auto& candidate : candidates) {
        if (!alike(candidate)) continue;
        besides = std::min(besides, besides_of(candidate.cost));
        ++count;
    }
    if (count < 2) return;
    for (auto& candidate : candidates) {
        if (!alike(candidate) || !doubtful(candidate)) continue;
        auto& cost = candidate.cost;
        cost.slope = common + besides;
        cost.per_byte = common;
        if (candidate.latency_bound > 0) cost.latency = std::min(cost.latency, candidate.latency_bound);
    }
}

/// Of what nobody has tried (Pace::hope), when all candidates are known otherwise.
inline void hope(std::span<Candidate> candidates, std::span<Pace> paces, base::Nanoseconds busy) noexcept {
    if (candidates.size() < 2) return;
    const auto best = least_per_byte(candidates);
    for (auto& candidate : candidates) paces[candidate.rail].hope(candidate.cost, best, busy);
}

}  // namespace railmux::sched

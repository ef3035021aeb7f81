// Claims: what is planned for each rail of large messages and not handed over yet, by all destinations; and in which order
// they are planned.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sched/policy.hpp"

namespace railmux::sched {

class Claims {
public:
    explicit Claims(std::size_t rails) : by_rail_(rails, 0) {}

    /// Of all destinations.
    [[nodiscard]] std::uint64_t of(std::uint32_t rail) const noexcept { return by_rail_[rail]; }

    /// Divides what is left for a destination, which claims nothing now: what others claim counts as taken. `shares` are its
    /// claims from then on.
    void plan(Policy& policy, std::span<Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
              std::span<std::uint64_t> shares) noexcept {
        for (auto& candidate : candidates) candidate.claimed = by_rail_[candidate.rail];
        policy.split(candidates, bytes, now, shares);
        for (std::size_t i = 0; i < candidates.size(); ++i) by_rail_[candidates[i].rail] += shares[i];
    }
    /// So much was handed over, of a claim that may be for less.
    void given(std::uint32_t rail, std::uint64_t& claim, std::uint64_t bytes) noexcept {
        const auto taken = std::min(bytes, claim);
        assert(by_rail_[rail] >= taken);
        claim -= taken;
        by_rail_[rail] -= taken;
    }
    /// A destination claims nothing any more. Returns what it did.
    std::uint64_t drop(std::span<const Candidate> candidates, std::span<std::uint64_t> claims) noexcept {
        std::uint64_t all = 0;
        for (std::size_t i = 0; i < claims.size(); ++i) {
            all += claims[i];
            by_rail_[candidates[i].rail] -= std::exchange(claims[i], 0);
        }
        return all;
    }

private:
    std::vector<std::uint64_t> by_rail_;
};

/// Plans for `count` destinations, each time another one first, before any rail is given something: what is given cannot come
/// back, and who was planned first must not decide. `plan(i, again)` returns whether there is more to bring than was planned
/// before: then all are planned once more, since the first ones did not know of that, and the last ones not what came of it.
template <typename Plan>
void plan_in_turn(std::size_t count, std::size_t first, Plan&& plan) {
    bool more = false;
    for (std::size_t n = 0; n < count; ++n) more = plan((first + n) % count, false) || more;
    if (!more || count == 1) return;
    for (std::size_t n = 0; n < count; ++n) static_cast<void>(plan((first + n) % count, true));
}

}  // namespace railmux::sched

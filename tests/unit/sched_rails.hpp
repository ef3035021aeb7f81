// Candidates as tests of policies want them.
//
// Threads: one.
// Lifetime: values.
#pragma once

#include <catch2/catch.hpp>

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "sched/vft.hpp"

namespace railmux::sched::test {

/// 10 us away, 1 us between messages, `per_byte` ns a byte.
inline Candidate rail(std::uint32_t number, double per_byte = 8, double latency = 10'000) {
    const Cost cost{.latency = to_ticks(latency),
                    .slope = to_ticks(per_byte),
                    .gap = to_ticks(1000.0),
                    .per_byte = to_ticks(per_byte)};
    return {.rail = number, .cost = cost};
}

/// Hands a message over, as the rail manager does.
inline void send(Vft& vft, Candidate& candidate, std::uint64_t bytes, base::Nanoseconds now = 0) {
    vft.charge(candidate, bytes, now);
    candidate.backlog += bytes;
}

/// How `vft` divides `bytes` now; all of them are given.
inline std::vector<std::uint64_t> split(Vft& vft, std::span<const Candidate> candidates, std::uint64_t bytes) {
    std::vector<std::uint64_t> shares(candidates.size(), 99);
    vft.split(candidates, bytes, 0, shares);
    CHECK(std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}) == bytes);
    return shares;
}

}  // namespace railmux::sched::test

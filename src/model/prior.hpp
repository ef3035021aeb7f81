// The model of a link before it has been measured: a guess from its transport and link speed, or what was measured at
// another link of its kind.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <cstdint>
#include <string_view>

#include <railmux/loggp.hpp>

namespace railmux::model {

/// Confidence 0 throughout. `speed_bps` of 0 is unknown; an unknown transport is taken for tcp.
[[nodiscard]] LogGP prior(std::string_view transport, std::uint64_t speed_bps);

/// The model of one pair for another of the same kind (transport, speed, hops), of which only half the round trip of one
/// byte is known: the difference is latency.
[[nodiscard]] LogGP for_other_pair(LogGP model, Nanos half_round_trip);

}  // namespace railmux::model

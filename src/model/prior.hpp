// The model of a link before it has been measured: a guess from its transport and link speed.
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

}  // namespace railmux::model

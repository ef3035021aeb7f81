// Raw points of a probe, as a table for other programs.
//
// Threads: pure functions over values.
// Lifetime: nothing is kept.
#pragma once

#include <span>
#include <string>

#include "model/sample.hpp"

namespace railmux::model {

/// CSV with a line of names; one line for each sample, times in ns.
[[nodiscard]] std::string to_csv(std::span<const Sample> samples);

}  // namespace railmux::model

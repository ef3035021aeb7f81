// Order statistics of measured times.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <cstdint>
#include <span>

namespace railmux::tools {

struct Spread {
    double min = 0;
    double mean = 0;
    double median = 0;
    double p99 = 0;
};

/// The mean, and the values at rank 0, the middle, and 99 % (nearest rank). Sorts the samples; all zero when there are none.
[[nodiscard]] Spread spread_of(std::span<std::int64_t> samples);

}  // namespace railmux::tools

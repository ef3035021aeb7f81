#include "tools/statistics.hpp"

#include <algorithm>

namespace railmux::tools {

Spread spread_of(std::span<std::int64_t> samples) {
    if (samples.empty()) return {};
    std::sort(samples.begin(), samples.end());
    const auto n = samples.size();
    // The median of an even number of samples lies between the two in the middle.
    const auto median = (static_cast<double>(samples[(n - 1) / 2]) + static_cast<double>(samples[n / 2])) / 2;
    const auto p99 = samples[(n * 99 + 99) / 100 - 1];
    return {static_cast<double>(samples.front()), median, static_cast<double>(p99)};
}

}  // namespace railmux::tools

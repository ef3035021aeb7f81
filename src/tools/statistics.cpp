#include "tools/statistics.hpp"

#include <algorithm>
#include <numeric>

namespace railmux::tools {

Spread spread_of(std::span<std::int64_t> samples) {
    if (samples.empty()) return {};
    std::sort(samples.begin(), samples.end());
    const auto n = samples.size();
    // The median of an even number of samples lies between the two in the middle.
    const auto median = (static_cast<double>(samples[(n - 1) / 2]) + static_cast<double>(samples[n / 2])) / 2;
    const auto p99 = samples[(n * 99 + 99) / 100 - 1];
    const auto mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(n);
    return {static_cast<double>(samples.front()), mean, median, static_cast<double>(p99)};
}

}  // namespace railmux::tools

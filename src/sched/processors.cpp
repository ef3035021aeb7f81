#include "sched/processors.hpp"

#include <algorithm>
#include <limits>

namespace railmux::sched {

void Processors::choose(std::span<Candidate> candidates) noexcept {
    constexpr auto never = std::numeric_limits<Ticks>::max();
    auto least = never;
    auto least_of_used = never;
    std::size_t fastest = 0;
    std::size_t used = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        auto& candidate = candidates[i];
        if (!candidate.by_processors) continue;
        candidate.spare = true;
        // A model may have a latency below nought.
        const auto takes = std::max<Ticks>(candidate.cost.latency + times(typical_bytes, candidate.cost.slope), 1);
        if (takes < least) {
            least = takes;
            fastest = i;
        }
        if (candidate.rail == rail_ && takes < least_of_used) {
            least_of_used = takes;
            used = i;
        }
    }
    if (least == never) return;
    if (least_of_used / 2 > least) used = fastest;
    rail_ = candidates[used].rail;
    candidates[used].spare = spare_;
}

}  // namespace railmux::sched

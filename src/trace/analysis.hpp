// What a trace says about the scheduler: how good its predictions were, and what better ones would have gained.
//
// Threads: pure functions.
// Lifetime: values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/reader.hpp"

namespace railmux::trace {

struct RailResult {
    std::string rail;
    std::uint64_t frames = 0;  // and pieces of large messages
    std::uint64_t bytes = 0;   // with headers
    double share = 0;          // of all bytes
    std::uint64_t timed = 0;   // frames whose delivery is known
    // |predicted - real| / real of those.
    double error_median = 0;
    double error_p90 = 0;
    // Of the timed frames that had a choice: real delivery less the earliest that was predicted for another link, where that
    // is positive. So much earlier it would have been there had it gone that way and that prediction been right. What was
    // planned for that link goes before a piece of a large message.
    std::uint64_t compared = 0;
    std::uint64_t regretted = 0;  // how often it was positive
    double regret_mean_ns = 0;    // over all compared
    base::Nanoseconds regret_most = 0;
};

/// By rail name, in the order of their first use, then all together under the name "all".
[[nodiscard]] std::vector<RailResult> analyse(std::span<const Trace> traces);

}  // namespace railmux::trace

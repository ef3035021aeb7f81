// Finding the sizes at which a network changes its protocol: where the measured values leave the line they followed.
//
// Threads: pure functions over values.
// Lifetime: none.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "model/statistics.hpp"

namespace railmux::model {

/// How a change is told from noise. The first two are the x and the factor of the literature.
struct ChangeOptions {
    std::size_t look_ahead = 4;  // so many points in a row must leave the line; 3 to 5
    double factor = 2;           // ... each raising the mean square deviation by this much
    /// Two lines must describe the points around a change better than one by this much, in squared sigmas. A change
    /// costs three parameters (line and place), whose chance gain exceeds 40 once in 10^8.
    double gain = 40;
    double bend = 0.04;  // where nothing stands out, but one line is off by so much from two
};

/// The places (ascending) of the last point of each range but the final one; `points` ascend in size. Every range has at
/// least three points.
[[nodiscard]] std::vector<std::size_t> find_changes(std::span<const Point> points, const ChangeOptions& options = {});

}  // namespace railmux::model

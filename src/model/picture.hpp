// Pictures of probes: the measured points, the fitted lines and the sizes where the protocol changes, for each rail in
// one figure, as SVG.
//
// Threads: pure functions over values.
// Lifetime: nothing is kept.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "model/assess.hpp"

namespace railmux::model {

struct PictureRail {
    std::string name;
    std::vector<Measured> sizes;
    LogGP model;
};

/// Lines are straight on linear axes; rails of very different speed are seen together on logarithmic ones.
enum class Axes : std::uint8_t { by_range, linear, logarithmic };

/// Filled: PRTT(1,0,s). Hollow: the gap between messages, g + (s-1) G. Each with the model's line.
[[nodiscard]] std::string draw_probe(std::span<const PictureRail> rails, const std::string& title,
                                     Axes axes = Axes::by_range);

}  // namespace railmux::model

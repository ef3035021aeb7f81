// Assessment: from samples of PRTT(n, d, s) to the parameters of a link.
//
//   gap(s) = g + (s-1) G = (PRTT(n,0,s) - PRTT(1,0,s)) / (n-1)         least squares over the sizes of a range
//   o_s(s)               = (PRTT(n,d,s) - PRTT(1,0,s)) / (n-1) - d     with d > gap(s); least squares, too
//   o_r(s)               = time inside a receive that came late; least squares, too
//   L                    = PRTT(1,0,1)/2 - o_s(1) - o_r(1)
//
// Threads: pure functions over values.
// Lifetime: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/changes.hpp"
#include "model/sample.hpp"

#include <railmux/loggp.hpp>

namespace railmux::model {

/// What is known about one size.
struct Measured {
    std::uint64_t bytes = 1;
    Summary single;      // PRTT(1,0,s)
    Summary gap;         // median and error only, as the following
    Summary send;        // o_s(s)
    Summary receive;     // o_r(s)
    bool shaky = false;  // only interrupted samples were there

    [[nodiscard]] Point gap_point() const noexcept;
    [[nodiscard]] Point send_point() const noexcept;
    [[nodiscard]] Point receive_point() const noexcept;
    [[nodiscard]] Point half_point() const noexcept;  // PRTT(1,0,s)/2
    [[nodiscard]] Point low_point() const noexcept;   // its low end
};

struct Assessment {
    LogGP model;
    std::vector<Measured> sizes;  // ascending
    std::size_t interrupted = 0;  // samples that were left out
    std::size_t outliers = 0;
};

/// What the samples say, size by size; sizes without any PRTT(1,0,s) are left out.
[[nodiscard]] Assessment summarise_sizes(std::span<const Sample> samples);

/// All of it. Without samples of single messages the model is empty, with confidence 0.
[[nodiscard]] Assessment assess(std::span<const Sample> samples, const ChangeOptions& options = {});

/// Whether `delay` lets the sender's overhead be seen: the rail must be free again before it ends.
[[nodiscard]] bool delay_shows_overhead(base::Nanoseconds delay, double gap) noexcept;

}  // namespace railmux::model

// Statistics of measured times: order statistics, and lines fitted by least squares.
//
// Threads: pure functions over values.
// Lifetime: none.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace railmux::model {

/// The value at quantile `q` (0..1), between two samples by interpolation. `sorted` is not empty.
[[nodiscard]] double quantile(std::span<const double> sorted, double q) noexcept;

/// What repeated measurements of one thing say. Noise of networks and schedulers only ever delays, so the low end of
/// the samples is what the hardware does, and the median what is met.
struct Summary {
    double low = 0;       // the 0.05 quantile: nearly the minimum, without depending on one sample
    double quartile = 0;  // the lower one: of two such summaries the difference scatters least
    double median = 0;    // never the mean
    double error = 0;     // standard error of the quartile or median, from the median deviation
    std::size_t kept = 0;
    std::size_t outliers = 0;  // far above the rest; left out of the numbers above
};

[[nodiscard]] Summary summarise(std::vector<double> samples);

/// A measured value at a size, and how far it may be off.
struct Point {
    double bytes = 0;
    double value = 0;
    double sigma = 1;
};

/// value(s) = at_one + slope (s - 1): with gaps, at_one is g and slope is G.
struct Line {
    double at_one = 0;
    double slope = 0;
    double at_one_error = 0;  // standard errors
    double slope_error = 0;
    double chi2 = 0;  // sum of ((value - line) / sigma)^2

    [[nodiscard]] double at(double bytes) const noexcept { return at_one + slope * (bytes - 1); }
    [[nodiscard]] double of_none() const noexcept { return at_one - slope; }
};

/// Least squares, each point weighted by 1/sigma^2. With one point (or one size) the line is flat.
[[nodiscard]] Line fit_line(std::span<const Point> points) noexcept;

/// The same without the points that stand off the line by more than six times the typical deviation.
[[nodiscard]] Line fit_line_robust(std::span<const Point> points);

}  // namespace railmux::model

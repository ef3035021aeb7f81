#include "model/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace railmux::model {

namespace {

constexpr double mad_to_sigma = 1.4826;   // median deviation to standard deviation, for a normal distribution
constexpr double median_widening = 1.25;  // standard error of a median against that of a mean: sqrt(pi / 2)

double median_of(std::vector<double>& values) {
    std::ranges::sort(values);
    return quantile(values, 0.5);
}

double typical_deviation(std::span<const double> values, double from) {
    std::vector<double> deviations(values.begin(), values.end());
    for (auto& value : deviations) value = std::abs(value - from);
    return mad_to_sigma * median_of(deviations);
}

/// The line through the median of all slopes between two points: up to a quarter of them may lie anywhere.
Line fit_line_resistant(std::span<const Point> points) {
    std::vector<double> slopes, rests;
    for (std::size_t i = 0; i < points.size(); ++i) {
        for (std::size_t j = i + 1; j < points.size(); ++j) {
            const double apart = points[j].bytes - points[i].bytes;
            if (apart != 0) slopes.push_back((points[j].value - points[i].value) / apart);
        }
    }
    Line line;
    if (!slopes.empty()) line.slope = median_of(slopes);
    for (const auto& point : points) rests.push_back(point.value - line.slope * (point.bytes - 1));
    line.at_one = median_of(rests);
    return line;
}

}  // namespace

double quantile(std::span<const double> sorted, double q) noexcept {
    const double place = q * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const auto above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Summary summarise(std::vector<double> samples) {
    Summary summary;
    if (samples.empty()) return summary;
    auto median = median_of(samples);
    // An outlier is far off by the samples' own measure, and also by a quarter: clocks that tick coarsely make most
    // samples equal, and the rest must not be outliers for that.
    const auto limit = std::max(median + 8 * typical_deviation(samples, median), 1.25 * median);
    if (samples.size() >= 4) {
        const auto kept = std::ranges::upper_bound(samples, limit);
        summary.outliers = static_cast<std::size_t>(samples.end() - kept);
        samples.erase(kept, samples.end());
        median = quantile(samples, 0.5);
    }
    summary.kept = samples.size();
    summary.low = quantile(samples, 0.05);
    summary.quartile = quantile(samples, 0.25);
    summary.median = median;
    summary.error =
        median_widening * typical_deviation(samples, median) / std::sqrt(static_cast<double>(samples.size()));
    return summary;
}

Line fit_line(std::span<const Point> points) noexcept {
    Line line;
    double w = 0, wx = 0, wy = 0;
    for (const auto& point : points) {
        const double weight = 1 / (point.sigma * point.sigma);
        w += weight;
        wx += weight * (point.bytes - 1);
        wy += weight * point.value;
    }
    if (w <= 0) return line;
    const double x_mean = wx / w, y_mean = wy / w;
    double xx = 0, xy = 0;  // about the means: sizes squared times weights would cost most digits otherwise
    for (const auto& point : points) {
        const double weight = 1 / (point.sigma * point.sigma);
        const double x = point.bytes - 1 - x_mean;
        xx += weight * x * x;
        xy += weight * x * (point.value - y_mean);
    }
    line.slope = xx > 0 ? xy / xx : 0;
    line.at_one = y_mean - line.slope * x_mean;
    line.slope_error = xx > 0 ? std::sqrt(1 / xx) : 0;
    line.at_one_error = std::sqrt(1 / w + (xx > 0 ? x_mean * x_mean / xx : 0));
    for (const auto& point : points) {
        const double off = (point.value - line.at(point.bytes)) / point.sigma;
        line.chi2 += off * off;
    }
    // Where the line does not pass as near to the points as their sigmas promise, the errors are larger, too.
    const double freedom = static_cast<double>(points.size()) - 2;
    if (freedom > 0 && line.chi2 > freedom) {
        line.slope_error *= std::sqrt(line.chi2 / freedom);
        line.at_one_error *= std::sqrt(line.chi2 / freedom);
    }
    return line;
}

Line fit_line_robust(std::span<const Point> points) {
    if (points.size() < 5) return fit_line(points);
    const auto resistant = fit_line_resistant(points);
    std::vector<double> off;
    for (const auto& point : points) off.push_back(std::abs(point.value - resistant.at(point.bytes)) / point.sigma);
    auto sorted = off;
    const auto limit = 6 * std::max(1.0, mad_to_sigma * median_of(sorted));
    std::vector<Point> near;
    for (std::size_t i = 0; i < points.size(); ++i) {
        if (off[i] <= limit) near.push_back(points[i]);
    }
    return fit_line(near.size() < 3 ? points : near);
}

}  // namespace railmux::model

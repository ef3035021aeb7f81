#include "model/changes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace railmux::model {

namespace {

constexpr std::size_t shortest = 3;  // points of a range: two fix a line, the third can contradict

/// lsq of the literature over `points`, in units of their sigmas.
double lsq(std::span<const Point> points) noexcept {
    return fit_line(points).chi2 / (static_cast<double>(points.size()) - 2);
}

/// Whether each of the next points raises lsq by the factor. Deviations below one sigma are no deviations, so that
/// points that happen to lie on a line do not make the next one look bad.
bool leaves_line(std::span<const Point> points, std::size_t length, const ChangeOptions& options) noexcept {
    const double limit = options.factor * std::max(1.0, lsq(points.first(length)));
    for (std::size_t more = 1; more <= options.look_ahead; ++more) {
        if (lsq(points.first(length + more)) <= limit) return false;
    }
    return true;
}

struct Split {
    std::size_t length = 0;  // of the left part
    double chi2 = 0;
};

/// The split of `points` into two lines that fits best.
Split best_split(std::span<const Point> points) noexcept {
    Split best{shortest, std::numeric_limits<double>::max()};
    for (auto length = shortest; length + shortest <= points.size(); ++length) {
        const auto chi2 = fit_line(points.first(length)).chi2 + fit_line(points.subspan(length)).chi2;
        if (chi2 < best.chi2) best = {length, chi2};
    }
    return best;
}

/// Whether two lines describe the points better than one by more than noise may.
bool better(std::span<const Point> points, const Split& split, const ChangeOptions& options) noexcept {
    const double freedom = std::max(1.0, static_cast<double>(points.size()) - 4);
    const double noise = std::max(1.0, split.chi2 / freedom);
    return fit_line(points).chi2 - split.chi2 > options.gain * noise;
}

/// How far the two lines are from the one, at most, relative to it.
double bend(std::span<const Point> points, const Split& split) noexcept {
    const auto one = fit_line(points), left = fit_line(points.first(split.length)),
               right = fit_line(points.subspan(split.length));
    double most = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const double all = one.at(points[i].bytes), part = (i < split.length ? left : right).at(points[i].bytes);
        most = std::max(most, std::abs(part - all) / std::max(std::abs(all), 1e-9));
    }
    return most;
}

/// The length of the first range in `points`, which begins there; nothing when it goes on to the end.
std::optional<std::size_t> first_range(std::span<const Point> points, const ChangeOptions& options) noexcept {
    for (auto length = shortest; length + options.look_ahead <= points.size(); ++length) {
        if (!leaves_line(points, length, options)) continue;
        // A small kink shows only some points later than it is: look for its place up to there, and as far beyond as
        // another range may not yet have begun.
        const auto window = points.first(std::min(points.size(), length + std::max(options.look_ahead, shortest)));
        const auto split = best_split(window);
        if (better(window, split, options)) return split.length;
    }
    // A curve without any corner leaves its line so slowly that no point stands out. It is worth two lines where one
    // would be wrong by some percent.
    if (points.size() < 2 * shortest) return std::nullopt;
    const auto split = best_split(points);
    if (!better(points, split, options) || bend(points, split) < options.bend) return std::nullopt;
    const auto within = first_range(points.first(split.length), options);
    return within ? within : split.length;
}

/// Times grow with size: a point that is more than twice as high as all about it but one, also as those behind it, is one that
/// something went wrong with. It counts for as little as it is off: what it differs by from any two lines would else be taken
/// for noise, in which changes drown. Three in a row may be a range.
std::vector<Point> without_wild(std::span<const Point> points) {
    constexpr std::size_t about = 2;  // on each side
    std::vector<Point> tame(points.begin(), points.end());
    for (std::size_t i = 0; i + about < points.size(); ++i) {
        std::vector<double> near;
        for (auto j = i - std::min(i, about); j <= i + about; ++j) {
            if (j != i) near.push_back(points[j].value);
        }
        std::ranges::sort(near);
        const double off = points[i].value - near[near.size() - 2];
        if (off > std::max(near[near.size() - 2], 6 * points[i].sigma)) tame[i].sigma = off;
    }
    return tame;
}

}  // namespace

std::vector<std::size_t> find_changes(std::span<const Point> measured, const ChangeOptions& options) {
    const auto tame = without_wild(measured);
    const std::span points(tame);
    std::vector<std::size_t> changes;
    std::size_t from = 0;
    while (points.size() - from >= shortest + options.look_ahead) {
        const auto length = first_range(points.subspan(from), options);
        if (!length) break;
        from += *length;
        changes.push_back(from - 1);
    }
    return changes;
}

}  // namespace railmux::model

// The second half of assessment: from sizes to ranges and their parameters.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "model/assess.hpp"
#include "model/rest.hpp"

namespace railmux::model {

namespace {

/// What is left of PRTT/2 after L, o and G is noise up to this share; beyond it, latency grows with size.
constexpr double left_over = 0.03;
/// ... unless some size alone is further off than that.
constexpr double far_off = 0.1;

/// What one size says against a line counts from so many of its errors on. At three, one noisy run of the 1400 in the tests
/// took an overhead that was off by 14 %.
constexpr double sure_by = 3, sure_by_overhead = 4;

double confidence(double value, double error, double shaky) noexcept {
    const double relative = error / std::max(std::abs(value), 1e-9);
    return (1 - shaky / 2) / (1 + 100 * relative * relative);  // 0.5 at 10 %
}

/// The line, or the flat one where the slope may as well be noise, or is not sure and changes the times of these sizes by
/// less than `matters`: it would only make the ends uncertain.
Line fit_line_if_sloped(std::span<const Point> points, double matters) {
    const auto line = fit_line_robust(points);
    const double rise = std::abs(line.slope) * (points.back().bytes - points.front().bytes);
    const double sure = std::abs(line.slope) / std::max(line.slope_error, 1e-12);
    if (sure > 20 || (sure > 4 && rise > matters)) return line;
    std::vector<Point> same_size(points.begin(), points.end());
    for (auto& point : same_size) point.bytes = 1;
    return fit_line_robust(same_size);
}

Linear linear(const Line& line) noexcept {
    if (line.of_none() >= 0) return {Nanos(line.of_none()), {line.slope}};
    return {Nanos(0), {std::max(0.0, line.slope)}};  // a fixed part below 0 is a fit's, not a CPU's
}

/// L may be negative, see ProtocolRange.
Linear latency(const Line& line) noexcept { return {Nanos(line.of_none()), {line.slope}}; }

/// The ranges of one link, filled one after the other.
class RangeFit {
public:
    /// `cold_from`: the least size before whose messages a link rests for long.
    RangeFit(std::span<const Measured> sizes, double latency_at_one, double jitter, double cold_from)
        : sizes_(sizes), latency_at_one_(latency_at_one), jitter_(jitter), cold_from_(cold_from) {
        const auto shaky = std::ranges::count(sizes, true, &Measured::shaky);
        shaky_ = static_cast<double>(shaky) / static_cast<double>(sizes.size());
    }

    /// `before` is the range of the smaller sizes; none for the first.
    [[nodiscard]] ProtocolRange fit(const ProtocolRange* before) {
        first_ = before == nullptr;
        fit_gap(before);
        range_.confidence.o_s = fit_overhead(&Measured::send, &Measured::send_point, range_.o_s);
        range_.confidence.o_r = fit_overhead(&Measured::receive, &Measured::receive_point, range_.o_r);
        if (first_) keep_smallest();
        fit_latency();
        return range_;
    }

private:
    void fit_gap(const ProtocolRange* before) {
        std::vector<Point> points;
        for (const auto& size : sizes_) {
            if (size.gap.kept > 0) points.push_back(size.gap_point());
        }
        if (points.empty()) return;
        auto line = fit_line_robust(points);
        const bool unsure = line.slope <= 0 || line.slope_error > 0.5 * line.slope;
        if (unsure && (before != nullptr || line.slope <= 0))
            borrow_slope(line, points, before != nullptr ? before->G.ns : slope_of_halves());
        range_.g = Nanos(std::max(0.0, line.at_one));
        range_.G.ns = std::max(0.0, line.slope);
        range_.confidence.g = confidence(line.at_one, line.at_one_error, shaky_);
        range_.confidence.G = points.size() < 2 ? 0 : confidence(line.slope, line.slope_error, shaky_);
    }

    /// A bandwidth when the gaps of the first range say nothing: round trips grow by G and by what overheads and copies
    /// add to it. Half of it errs by less than a factor of two on most networks, and is 0 only where these do not grow either.
    [[nodiscard]] double slope_of_halves() const {
        std::vector<Point> points;
        for (const auto& size : sizes_) points.push_back(size.half_point());
        return std::max(0.0, fit_line_robust(points).slope / 2);
    }

    /// Few points, much noise: another slope is more likely than any of theirs, which would be followed far beyond the
    /// largest size.
    static void borrow_slope(Line& line, std::span<const Point> points, double slope) {
        std::vector<Point> flat(points.begin(), points.end());
        for (auto& point : flat) {
            point.value -= slope * (point.bytes - 1);
            point.bytes = 1;
        }
        const auto error = line.slope_error;
        line = fit_line(flat);
        line.slope = slope;
        line.slope_error = error;
    }

    double fit_overhead(Summary Measured::*which, Point (Measured::*point)() const noexcept, Linear& result) {
        std::vector<Point> points;
        for (const auto& size : sizes_) {
            if ((size.*which).kept > 0) points.push_back((size.*point)());
        }
        if (points.empty()) return 0;
        const auto line = fit_line_if_sloped(points, matters());
        result = linear(line);
        return confidence(line.at(points.front().bytes), points.front().sigma, shaky_);
    }

    /// What the smallest size takes was measured more often than any other. Lines, which other sizes bend, say it better only
    /// as far as it is uncertain; they keep their slopes.
    void keep_smallest() {
        const auto& one = sizes_.front();
        const auto passes = [&](Nanos& at_none, PerByte slope, double bytes, const Point& measured, std::size_t kept,
                                double sure) {
            const double line = at_none.count() + slope.ns * bytes;
            if (kept == 0 || std::abs(measured.value - line) <= sure * measured.sigma) return;
            at_none = Nanos(std::max(0.0, at_none.count() + measured.value - line));
        };
        const auto bytes = static_cast<double>(one.bytes);
        passes(range_.g, range_.G, bytes - 1, one.gap_point(), one.gap.kept, sure_by);
        passes(range_.o_s.fixed, range_.o_s.per_byte, bytes, one.send_point(), one.send.kept, sure_by_overhead);
        passes(range_.o_r.fixed, range_.o_r.per_byte, bytes, one.receive_point(), one.receive.kept, sure_by_overhead);
    }

    /// A share of the time that the largest size takes.
    [[nodiscard]] double matters() const noexcept { return 0.01 * sizes_.back().single.low / 2; }

    /// Half a round trip as it is typically met, less the jitter that is added to all predictions. Messages that leave after
    /// a long rest vary by more than one byte does: the best of them found warm what an application's finds cold. (In
    /// the first range one byte stands for all.)
    [[nodiscard]] double typical(const Measured& size) const noexcept {
        const double low = size.single.low / 2, more = size.single.median / 2 - low - jitter_;
        const bool cold = !first_ && static_cast<double>(size.bytes) >= cold_from_;
        return cold && more > std::max(jitter_, far_off * low) ? low + more : low;
    }

    /// What is left of half a round trip beyond the other parameters.
    [[nodiscard]] double left(const Measured& size) const noexcept {
        return typical(size) - (range_.o_s.of(size.bytes) + range_.o_r.of(size.bytes)).count() -
               range_.G.of(size.bytes - 1).count();
    }

    void fit_latency() {
        std::vector<Point> points;
        std::size_t off = 0;
        bool far = false;
        for (const auto& size : sizes_) {
            const auto rest = left(size);
            auto point = size.low_point();
            // The low end of few samples stands higher in the noise than that of the many at one byte: within jitter.
            const auto error = std::abs(rest - latency_at_one_);
            if (error > std::max({left_over * point.value, 3 * point.sigma, jitter_})) ++off;
            if (error > std::max({far_off * point.value, 6 * point.sigma, 2 * jitter_})) far = true;
            point.value = rest;
            points.push_back(point);
        }
        range_.L = {Nanos(latency_at_one_), {0}};
        if (5 * off > points.size() || far)
            range_.L = first_ ? growing_from_one(points) : latency(fit_line_if_sloped(points, matters()));
        const auto& best = sizes_.front();
        range_.confidence.L = confidence(best.single.low / 2, best.single.error, shaky_);
    }

    /// In the first range L at one byte is what it is; only its growth is fitted.
    [[nodiscard]] Linear growing_from_one(std::span<const Point> points) const noexcept {
        double xx = 0, xy = 0;
        for (const auto& point : points) {
            const double weight = 1 / (point.sigma * point.sigma);
            xx += weight * (point.bytes - 1) * (point.bytes - 1);
            xy += weight * (point.bytes - 1) * (point.value - latency_at_one_);
        }
        return {Nanos(latency_at_one_), {xx > 0 ? xy / xx : 0}};
    }

    std::span<const Measured> sizes_;
    double latency_at_one_;
    double jitter_;
    double cold_from_;
    double shaky_ = 0;  // share of sizes
    bool first_ = true;
    ProtocolRange range_;
};

/// A change that gaps and round trips both show, each at a place of its own: the one of these, or between them, at which two
/// lines describe both best. Whose line hardly bends knows its place badly. `first` and `last` are the points of the two ranges
/// that meet there.
std::size_t common_place(std::span<const Point> gaps, std::span<const Point> halves, std::size_t there,
                         std::size_t other, std::size_t first, std::size_t last) {
    constexpr std::size_t shortest = 3, around = 6;  // points: of a range, and those that are looked at on each side
    const auto [from, to] = std::minmax(there, other);
    const auto begin = std::max(first, from + 1 - std::min(from + 1, around));
    const auto end = std::min(last, to + around) + 1;
    const auto off = [&](std::span<const Point> points, std::size_t place) {
        return fit_line(points.subspan(begin, place + 1 - begin)).chi2 +
               fit_line(points.subspan(place + 1, end - place - 1)).chi2;
    };
    auto best = there;
    auto least = std::numeric_limits<double>::max();
    for (auto place = from; place <= to; ++place) {
        if (place + 1 < first + shortest || place + shortest > last) continue;
        const auto both = off(gaps, place) + off(halves, place);
        if (both < least) best = place;
        least = std::min(least, both);
    }
    return best;
}

/// A protocol changes where the gaps or the round trips leave their lines; both rarely do at the very same point.
std::vector<std::size_t> changes_of(std::span<const Measured> sizes, const ChangeOptions& options) {
    std::vector<Point> gaps, halves;
    for (const auto& size : sizes) {
        if (size.gap.kept == 0) return {};  // too little measured for ranges
        gaps.push_back(size.gap_point());
        halves.push_back(size.half_point());
    }
    auto all = find_changes(gaps, options);
    // Nobody makes a protocol for so few sizes; a disturbance that lasted for some samples may look like one.
    const auto narrow = [&](std::size_t from, std::size_t to) {
        const auto first = sizes[from + 1].bytes, last = sizes[to].bytes;
        return last < first + first / 5;
    };
    for (const auto place : find_changes(halves, options)) {
        const auto apart = [&](std::size_t one) { return std::max(one, place) - std::min(one, place); };
        const auto other = std::ranges::min_element(all, {}, apart);
        if (other == all.end() || (apart(*other) >= 3 && !narrow(std::min(*other, place), std::max(*other, place)))) {
            all.insert(std::ranges::lower_bound(all, place), place);
            continue;
        }
        const auto first = other == all.begin() ? 0 : *std::prev(other) + 1;
        const auto last = std::next(other) == all.end() ? sizes.size() - 1 : *std::next(other);
        *other = common_place(gaps, halves, *other, place, first, last);
    }
    // The last range holds for all that is larger: it must not rest on the end of what was measured.
    const auto too_late = [&](std::size_t place) { return sizes[place].bytes > sizes.back().bytes / 8 * 7; };
    while (!all.empty() && too_late(all.back())) all.pop_back();
    for (std::size_t i = 1; i < all.size();) {
        const bool leave_out = narrow(all[i - 1], all[i]);
        if (leave_out) all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
        if (!leave_out) ++i;
    }
    if (all.size() >= LogGP::max_ranges) all.resize(LogGP::max_ranges - 1);
    return all;
}

/// Between the last size of a range and the first of the next the one goes over into the other where their deliveries meet, if
/// they do: a steep line may say less than nothing just before the sizes that it was fitted to.
void end_where_deliveries_meet(LogGP& model, std::span<const Measured> sizes) {
    const auto delivery = [](const ProtocolRange& range) {
        return Linear{range.L.fixed + range.o_s.fixed + range.o_r.fixed - range.G.of(1),
                      {range.L.per_byte.ns + range.o_s.per_byte.ns + range.o_r.per_byte.ns + range.G.ns}};
    };
    for (std::size_t i = 0; i + 1 < model.ranges.size(); ++i) {
        auto& end = model.ranges[i].up_to_bytes;
        const auto one = delivery(model.ranges[i]), other = delivery(model.ranges[i + 1]);
        const auto next = std::ranges::upper_bound(sizes, end, {}, &Measured::bytes);
        const double slopes = other.per_byte.ns - one.per_byte.ns;
        if (next == sizes.end() || slopes == 0) continue;
        const double meet = (one.fixed - other.fixed).count() / slopes;
        if (meet > static_cast<double>(end) && meet < static_cast<double>(next->bytes))
            end = static_cast<std::uint64_t>(meet);
    }
}

/// A message leaves as long after the one before as its own bytes take (Prober::rest), by the gaps of the largest sizes.
double cold_from(std::span<const Measured> sizes) {
    std::vector<double> per_byte;
    for (const auto& size : sizes) {
        if (size.bytes < sizes.back().bytes / 4 || size.gap.kept == 0) continue;
        per_byte.push_back(size.gap.median / static_cast<double>(size.bytes));
    }
    if (per_byte.empty()) return std::numeric_limits<double>::max();
    std::ranges::sort(per_byte);
    return static_cast<double>(cold_after) / std::max(quantile(per_byte, 0.5), 1e-9);
}

/// Beyond what was measured a message is not delivered faster than the rail serves it, though the largest ones were: what
/// rails let pass at once (token buckets, socket buffers) does not grow with the message.
void bound_extrapolation(LogGP& model, std::uint64_t largest) {
    auto& last = model.ranges.back();
    const double overheads = last.o_s.per_byte.ns + last.o_r.per_byte.ns;
    if (last.L.per_byte.ns + overheads >= -left_over * last.G.ns || model.ranges.size() == LogGP::max_ranges) return;
    auto beyond = last;
    last.up_to_bytes = largest;
    beyond.L.per_byte.ns = -overheads;
    beyond.L.fixed += last.L.of(largest) - beyond.L.of(largest);
    model.ranges.push_back(beyond);
}

}  // namespace

Assessment assess(std::span<const Sample> samples, const ChangeOptions& options) {
    auto result = summarise_sizes(samples);
    auto& sizes = result.sizes;
    if (sizes.empty()) return result;
    auto ends = changes_of(sizes, options);
    ends.push_back(sizes.size() - 1);

    auto& model = result.model;
    model.ranges.clear();
    const auto& smallest = sizes.front();
    model.half_round_trip = Nanos(std::max(0.0, smallest.single.median / 2));
    model.jitter = Nanos(std::max(0.0, (smallest.single.median - smallest.single.low) / 2));
    double latency_at_one = smallest.single.low / 2;
    const auto cold = cold_from(sizes);
    std::size_t from = 0;
    for (const auto end : ends) {
        const auto part = std::span<const Measured>(sizes).subspan(from, end + 1 - from);
        if (from == 0) {  // the first range's overheads make L, and L makes its range
            const auto r = RangeFit(part, 0, 0, cold).fit(nullptr);
            latency_at_one -=
                (r.o_s.of(smallest.bytes) + r.o_r.of(smallest.bytes) + r.G.of(smallest.bytes - 1)).count();
        }
        auto range =
            RangeFit(part, latency_at_one, model.jitter.count(), cold).fit(from == 0 ? nullptr : &model.ranges.back());
        range.up_to_bytes = end + 1 == sizes.size() ? std::numeric_limits<std::uint64_t>::max() : sizes[end].bytes;
        model.ranges.push_back(range);
        from = end + 1;
    }
    end_where_deliveries_meet(model, sizes);
    bound_extrapolation(model, sizes.back().bytes);
    return result;
}

}  // namespace railmux::model

// The first half of assessment: what the samples say of each size.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "model/assess.hpp"

namespace railmux::model {

namespace {

/// Deviations below this share of a value are none: no network is a straight line to more digits.
constexpr double resolution = 0.01;
Point point_of(std::uint64_t bytes, double value, double error) noexcept {
    return {static_cast<double>(bytes), value, std::max({error, resolution * std::abs(value), 0.1})};
}

/// Per size, the raw times of each kind.
struct Raw {
    std::vector<double> single;
    std::vector<const Sample*> trains;   // d = 0
    std::vector<const Sample*> delayed;  // d > 0
    std::vector<double> late_receive;
    std::vector<double> polled_receive;
    std::vector<double> timed_send;
    bool shaky = false;
};

double time_of(const Sample& sample) noexcept { return sample.interrupted() ? sample.least_prtt() : sample.prtt(); }

void sort_in(Raw& raw, const Sample& sample) {
    const auto& train = sample.train;
    if (train.late_look > 0) {
        if (sample.receive_cpu > 0) raw.late_receive.push_back(static_cast<double>(sample.receive_cpu));
        return;
    }
    if (train.n == 1) {
        raw.single.push_back(time_of(sample));
    } else {
        (train.delay > 0 ? raw.delayed : raw.trains).push_back(&sample);
    }
    for (const auto cpu : {sample.receive_cpu, sample.mirror_receive_cpu}) {
        if (cpu > 0) raw.polled_receive.push_back(static_cast<double>(cpu));
    }
    if (sample.send_cpu > 0) {
        raw.timed_send.push_back(static_cast<double>(sample.send_cpu) / train.n);
    }
}

/// Clean samples; of what was interrupted every time, those that are about right all the same.
std::map<std::uint64_t, Raw> sort_out(std::span<const Sample> samples, std::size_t& interrupted) {
    using Kind = std::tuple<std::uint64_t, bool, bool, bool>;
    const auto kind = [](const Sample& s) {
        return Kind{s.train.bytes, s.train.n > 1, s.train.delay > 0, s.train.late_look > 0};
    };
    std::set<Kind> clean;
    for (const auto& sample : samples) {
        if (!sample.interrupted()) clean.insert(kind(sample));
    }
    std::map<std::uint64_t, Raw> sizes;
    for (const auto& sample : samples) {
        auto& raw = sizes[sample.train.bytes];
        if (!sample.interrupted()) {
            sort_in(raw, sample);
            continue;
        }
        ++interrupted;
        if (clean.contains(kind(sample)) || sample.mostly_unseen()) continue;
        raw.shaky = true;
        sort_in(raw, sample);
    }
    return sizes;
}

/// (PRTT(n,...) - PRTT(1,0,s)) / (n-1), less the delay that was between the messages.
Summary per_message(const std::vector<const Sample*>& trains, const Summary& single) {
    std::vector<double> values;
    for (const auto* sample : trains) {
        const double between = static_cast<double>(sample->train.n - 1);
        values.push_back((time_of(*sample) - static_cast<double>(sample->idle) - single.quartile) / between);
    }
    auto summary = summarise(values);
    summary.median = summary.quartile;  // against that of the singles; the noise of one message is in both
    if (!trains.empty()) {              // PRTT(1,0,s) is uncertain, too
        summary.error = std::hypot(summary.error, single.error / (trains.front()->train.n - 1));
    }
    return summary;
}

/// o_s by the delayed trains whose delays were long enough. Shapers and interruptions add to it, so where the sends
/// themselves were timed and took less, that counts; as it does where delayed trains scatter too much.
Summary send_overhead(const Raw& raw, const Measured& size) {
    std::vector<const Sample*> long_enough;
    for (const auto* sample : raw.delayed) {
        const auto mean_delay = sample->idle / (sample->train.n - 1);
        if (delay_shows_overhead(mean_delay, size.gap.median)) long_enough.push_back(sample);
    }
    auto by_delay = per_message(long_enough, size.single);
    by_delay.median = std::max(0.0, by_delay.median);
    auto timed = summarise(raw.timed_send);
    if (by_delay.kept == 0) return timed;
    const bool unsure = by_delay.error > 0.1 * by_delay.median || timed.median < by_delay.median;
    return timed.kept > 0 && unsure ? timed : by_delay;
}

Measured measured(std::uint64_t bytes, const Raw& raw) {
    Measured size{.bytes = bytes, .shaky = raw.shaky};
    size.single = summarise(raw.single);
    size.gap = per_message(raw.trains, size.single);
    size.send = send_overhead(raw, size);
    size.receive = summarise(raw.late_receive.empty() ? raw.polled_receive : raw.late_receive);
    return size;
}

/// One size with little scatter by chance must not count for more than those about it: samples scatter at least as they
/// typically do there. What is typical of all sizes says little of any: times of a thousand as long scatter by more.
void level_errors(std::vector<Measured>& sizes) {
    constexpr std::ptrdiff_t about = 4;  // sizes on each side
    const auto root = [](const Summary& summary) { return std::sqrt(static_cast<double>(summary.kept)); };
    for (auto part : {&Measured::single, &Measured::gap, &Measured::send, &Measured::receive}) {
        std::vector<double> scatter;
        std::vector<Summary*> there;
        for (auto& size : sizes) {
            auto& summary = size.*part;
            if (summary.kept == 0) continue;
            there.push_back(&summary);
            scatter.push_back(summary.error * root(summary));
        }
        const auto end = std::ssize(scatter);
        for (std::ptrdiff_t i = 0; i < end; ++i) {
            std::vector<double> near(scatter.begin() + std::max<std::ptrdiff_t>(0, i - about),
                                     scatter.begin() + std::min(end, i + about + 1));
            std::ranges::sort(near);
            auto& summary = *there[static_cast<std::size_t>(i)];
            summary.error = std::max(summary.error, quantile(near, 0.5) / root(summary));
        }
    }
}

}  // namespace

Point Measured::send_point() const noexcept { return point_of(bytes, send.median, send.error); }
Point Measured::receive_point() const noexcept { return point_of(bytes, receive.median, receive.error); }
Point Measured::gap_point() const noexcept { return point_of(bytes, gap.median, gap.error); }
Point Measured::half_point() const noexcept { return point_of(bytes, single.median / 2, single.error / 2); }
Point Measured::low_point() const noexcept { return point_of(bytes, single.low / 2, single.error / 2); }

bool delay_shows_overhead(base::Nanoseconds delay, double gap) noexcept { return static_cast<double>(delay) > gap; }

Assessment summarise_sizes(std::span<const Sample> samples) {
    Assessment result;
    for (const auto& [bytes, raw] : sort_out(samples, result.interrupted)) {
        if (raw.single.empty()) continue;
        result.sizes.push_back(measured(bytes, raw));
        result.outliers += result.sizes.back().single.outliers + result.sizes.back().gap.outliers;
    }
    level_errors(result.sizes);
    return result;
}

}  // namespace railmux::model

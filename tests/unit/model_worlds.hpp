// Two worlds in which a Prober measures: a link that is nothing but the LogGP formulas and noise, fast enough for
// hundreds of runs; and two rails of the simulated fabric, with real frames.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "model/mirror.hpp"
#include "model/prober.hpp"
#include "transports/sim/fabric.hpp"
#include "unit/model_systems.hpp"

namespace railmux::test {

/// Times at which a process does not look at its network: busy for `busy_ns`, then looking for a random time.
class BusyTimes {
public:
    BusyTimes(double busy_ns, double between_ns, std::uint64_t seed)
        : busy_ns_(busy_ns), between_(1 / between_ns), random_(seed), from_(between_(random_)) {}

    /// When somebody looks, at `now` or later; and how long nobody had before. `now` never goes back by much.
    [[nodiscard]] std::pair<double, double> look(double now) {
        while (from_ + busy_ns_ <= now) from_ += busy_ns_ + between_(random_);
        if (now < from_) return {now, 0};
        return {from_ + busy_ns_, busy_ns_};
    }

private:
    double busy_ns_;
    std::exponential_distribution<double> between_;
    std::mt19937_64 random_;
    double from_;
};

class FormulaLink {
public:
    FormulaLink(LogGP truth, double noise_mean_ns, std::uint64_t seed)
        : truth_(std::move(truth)), noise_mean_ns_(noise_mean_ns), random_(seed) {}

    BusyTimes* mirror_busy = nullptr;

    [[nodiscard]] model::Sample measure(const model::Train& train, base::Nanoseconds now) {
        const auto& r = truth_.range(train.bytes);
        const double o_s = r.o_s.of(train.bytes).count(), o_r = r.o_r.of(train.bytes).count();
        const double transfer = r.G.of(train.bytes - 1).count();
        const double way = o_s + r.L.of(train.bytes).count() + o_r + transfer;
        double ready = static_cast<double>(now), rail_free = 0, arrival = 0;
        for (std::uint32_t i = 0; i < train.n; ++i) {
            const double start = std::max(ready, rail_free);
            rail_free = start + r.g.count() + transfer;
            arrival = std::max(arrival, start + way + noise());
            ready += o_s + (i + 1 < train.n ? static_cast<double>(train.delay) : 0);
        }
        const auto [looked, blind] = mirror_busy ? mirror_busy->look(arrival) : std::pair{arrival, 0.0};
        const double back = looked + way + noise();
        model::Sample sample{.train = train};
        sample.round_trip = std::llround(back) - now;
        sample.idle = train.delay * (train.n - 1);
        sample.mirror_blind = std::llround(blind);
        if (train.late_look > 0) sample.receive_cpu = std::llround(o_r);
        return sample;
    }

private:
    double noise() {
        return noise_mean_ns_ > 0 ? std::exponential_distribution<double>(1 / noise_mean_ns_)(random_) : 0;
    }

    LogGP truth_;
    double noise_mean_ns_;
    std::mt19937_64 random_;
};

/// One-sided noise of a tenth of what a byte takes.
inline double tenth(const LogGP& truth) { return 0.1 * truth.predict(1).delivery.count(); }

inline model::ProbeOptions full_probe() { return {.kind = model::ProbeKind::full}; }

/// Runs a probe to its end in a FormulaLink.
inline const model::Outcome& run(model::Prober& prober, FormulaLink& link,
                                 model::Application application = model::Application::idle) {
    base::Nanoseconds now = 1'000'000;
    while (true) {
        const auto action = prober.next(now, application);
        if (action.kind == model::Action::Kind::finished) return prober.outcome();
        if (action.kind == model::Action::Kind::wait) {
            now = action.until;
            continue;
        }
        const auto sample = link.measure(action.train, now);
        now += sample.round_trip + 1000;
        prober.answered(sample, now);
    }
}

inline transports::sim::Timing timing_of(const LogGP& model, double noise_mean_ns) {
    transports::sim::Timing timing;
    timing.ranges.clear();
    timing.noise_mean_ns = noise_mean_ns;
    for (const auto& r : model.ranges) {
        timing.ranges.push_back({.up_to_bytes = r.up_to_bytes,
                                 .L = r.L.fixed.count(),
                                 .o_s = {r.o_s.fixed.count(), r.o_s.per_byte.ns},
                                 .o_r = {r.o_r.fixed.count(), r.o_r.per_byte.ns},
                                 .g = r.g.count(),
                                 .G = r.G.ns});
    }
    return timing;
}

/// A prober at host a, a mirror at host b, one simulated link. Frames are as long as the payload alone, so that what is
/// measured can be compared with what was put in; what the headers would say is passed by hand.
class SimWorld {
public:
    SimWorld(const LogGP& truth, double noise_mean_ns, std::uint64_t seed, std::uint32_t max_bytes = 65536)
        : SimWorld(timing_of(truth, noise_mean_ns), seed, max_bytes) {}
    SimWorld(const transports::sim::Timing& timing, std::uint64_t seed, std::uint32_t max_bytes = 65536)
        : fabric_(seed), bytes_(max_bytes) {
        transports::sim::RailOptions options;
        options.timing = timing;
        options.max_frame = max_bytes;
        a_ = fabric_.open("a", options);
        b_ = fabric_.open("b", options);
        link_ = a_->connect(b_->address(), {});
        while (fabric_.advance_to_next_event()) look();
    }

    BusyTimes* mirror_busy = nullptr;

    const model::Outcome& run(model::Prober& prober, model::Application application = model::Application::idle) {
        while (true) {
            const auto action = prober.next(fabric_.now(), application);
            if (action.kind == model::Action::Kind::finished) return prober.outcome();
            if (action.kind == model::Action::Kind::wait) {
                fabric_.advance_to(action.until);
                continue;
            }
            const auto sample = measure(action.train);
            prober.answered(sample, fabric_.now());
            advance_to(fabric_.now() + 1000);
        }
    }

    [[nodiscard]] transports::sim::Fabric& fabric() { return fabric_; }

private:
    model::Sample measure(const model::Train& train) {
        sample_ = {.train = train};
        answered_ = false;
        index_ = 0;
        const auto begin = fabric_.now();
        auto sent = begin;
        for (std::uint32_t i = 0; i < train.n; ++i) {
            if (i > 0 && train.delay > 0) {
                advance_to(sent + train.delay);
                sample_.idle += fabric_.now() - sent;
            }
            post(*a_, link_, train.bytes);
            sent = fabric_.cpu_free("a");
        }
        if (train.late_look > 0) {
            prober_looks_ = false;
            advance_to(begin + train.late_look);
            prober_looks_ = true;
            look();
            sample_.receive_cpu = fabric_.cpu_free("a") - fabric_.now();
        }
        while (!answered_) {
            const auto next = fabric_.next_event();
            advance_to(mirror_looks_at_ > fabric_.now() && (!next || mirror_looks_at_ < *next) ? mirror_looks_at_
                                                                                               : *next);
        }
        sample_.round_trip = noticed_ - begin;
        return sample_;
    }

    void advance_to(base::Nanoseconds time) {
        while (true) {
            const auto next = fabric_.next_event();
            const auto mirror = mirror_looks_at_ > fabric_.now() ? mirror_looks_at_ : time;
            const auto to = std::min({time, mirror, next ? *next : time});
            fabric_.advance_to(to);
            look();
            if (to >= time) return;
        }
    }

    void look() {
        if (prober_looks_) poll(*a_);
        const auto now = static_cast<double>(fabric_.now());
        const auto [at, blind] = mirror_busy ? mirror_busy->look(now) : std::pair{now, 0.0};
        if (at > now) {
            mirror_looks_at_ = std::llround(at) + 1;
            mirror_blind_ = std::llround(blind);
            return;
        }
        poll(*b_);
        mirror_looks_at_ = 0;
        mirror_blind_ = 0;
    }

    void poll(transports::Rail& rail) {
        std::array<transports::Event, 32> events;
        while (const auto count = rail.poll(events)) {
            for (const auto& event : std::span(events).first(count)) {
                if (event.kind == transports::EventKind::connect_request) rail.accept(event.link, {});
                if (event.kind == transports::EventKind::received) received(rail, event);
            }
        }
    }

    void received(transports::Rail& rail, const transports::Event& event) {
        if (&rail == a_.get()) {
            noticed_ = fabric_.now();
            answered_ = true;
            return;
        }
        const auto& train = sample_.train;
        const model::ProbeRequest request{.train = train.id,
                                          .n = static_cast<std::uint16_t>(train.n),
                                          .index = index_++,
                                          .bytes = static_cast<std::uint32_t>(train.bytes)};
        if (!mirror_.arrived(request, {.at = fabric_.now(), .blind = mirror_blind_})) return;
        const auto reply = mirror_.reply(fabric_.now());
        if (!model::answers(reply, sample_)) throw std::logic_error("the mirror answers another train");
        post(*b_, event.link, reply.bytes);
    }

    void post(transports::Rail& rail, transports::LinkId link, std::uint64_t bytes) {
        const transports::Segment segment{bytes_.data(), bytes};
        const transports::Work work{.link = link, .segments = {&segment, 1}};
        if (rail.post({&work, 1}) != 1) throw std::runtime_error("the rail is full");
    }

    transports::sim::Fabric fabric_;
    std::vector<std::byte> bytes_;
    std::unique_ptr<transports::Rail> a_, b_;
    transports::LinkId link_;
    model::Mirror mirror_;
    model::Sample sample_;
    std::uint16_t index_ = 0;
    bool prober_looks_ = true, answered_ = false;
    base::Nanoseconds noticed_ = 0, mirror_looks_at_ = 0, mirror_blind_ = 0;
};

/// The largest relative error of any parameter of any range, and which it is. Numbers too small to matter for any
/// message of the range (1 % of its delivery) are not looked at.
struct Worst {
    double error = 0;
    std::string what;

    void see(const std::string& name, double found, double truth, double floor) {
        const double off = std::abs(found - truth) / std::max(std::abs(truth), floor);
        if (off <= error) return;
        error = off;
        what = name + " " + std::to_string(found) + " for " + std::to_string(truth);
    }
};

inline Worst worst_error(const LogGP& found, const LogGP& truth) {
    Worst worst;
    if (found.ranges.size() != truth.ranges.size()) return {1e9, std::to_string(found.ranges.size()) + " ranges"};
    for (std::size_t i = 0; i < truth.ranges.size(); ++i) {
        const auto &f = found.ranges[i], &t = truth.ranges[i];
        const auto range = " of range " + std::to_string(i);
        const auto first = i == 0 ? std::uint64_t{1} : truth.ranges[i - 1].up_to_bytes + 1;
        const auto last = i + 1 == truth.ranges.size() ? std::uint64_t{65536} : t.up_to_bytes;
        for (const auto size : {first, last}) {
            const auto floor = 0.01 * truth.predict(size).delivery.count();
            worst.see("L" + range, f.L.of(size).count(), t.L.of(size).count(), floor);
            worst.see("o_s" + range, f.o_s.of(size).count(), t.o_s.of(size).count(), floor);
            worst.see("o_r" + range, f.o_r.of(size).count(), t.o_r.of(size).count(), floor);
        }
        worst.see("g" + range, f.g.count(), t.g.count(), 0);
        worst.see("G" + range, f.G.ns, t.G.ns, 0);
    }
    return worst;
}

}  // namespace railmux::test

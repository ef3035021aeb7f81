// Probes while the application sends: what they leave to it.
#include <catch2/catch.hpp>

#include "unit/model_worlds.hpp"

using namespace railmux;
using model::Application;
using model::ProbeKind;
using model::Prober;
using model::Verdict;

TEST_CASE("in the background no second holds more than two percent of the rail", "[model]") {
    const auto system = test::systems().at(2);  // gigabit
    test::FormulaLink link(system.truth, 0, 1);
    Prober prober({.kind = ProbeKind::full, .expected = system.truth, .max_bytes = 16384, .grid = 8, .rounds = 4});
    std::deque<std::pair<base::Nanoseconds, std::uint64_t>> second;
    std::uint64_t bytes = 0, most = 0;
    base::Nanoseconds now = 0;
    for (auto action = prober.next(now, Application::sending); action.kind != model::Action::Kind::finished;
         action = prober.next(now, Application::sending)) {
        if (action.kind == model::Action::Kind::wait) {
            REQUIRE(action.until > now);
            now = action.until;
            continue;
        }
        second.emplace_back(now, action.train.all_bytes());
        bytes += action.train.all_bytes();
        while (second.front().first + base::second <= now) {
            bytes -= second.front().second;
            second.pop_front();
        }
        most = std::max(most, bytes);
        const auto sample = link.measure(action.train, now);
        now += sample.round_trip;
        prober.answered(sample, now);
    }
    const double rate = 1e9 / system.truth.range(1).G.ns;
    CHECK(static_cast<double>(most) <= 0.02 * rate);
    CHECK(static_cast<double>(most) > 0.005 * rate);
    CHECK(prober.outcome().verdict == Verdict::measured);
    CHECK(test::worst_error(prober.outcome().assessment.model, system.truth).error < 0.03);
}

TEST_CASE("probes of several links in the background share the two percent of their rail", "[model]") {
    const auto system = test::systems().at(2);  // gigabit
    const auto limiter = std::make_shared<model::Limiter>();
    constexpr int links = 40;
    std::uint64_t bytes = 0;
    for (int i = 0; i < links; ++i) {
        test::FormulaLink link(system.truth, 0, 1);
        Prober prober({.kind = ProbeKind::quick, .expected = system.truth, .limiter = limiter});
        base::Nanoseconds now = 0;
        for (auto action = prober.next(now, Application::sending); action.kind == model::Action::Kind::send;
             action = prober.next(now, Application::sending)) {
            bytes += action.train.all_bytes();
            prober.answered(link.measure(action.train, now), now);  // all within the same moment
        }
    }
    const double rate = 1e9 / system.truth.range(1).G.ns;
    CHECK(static_cast<double>(bytes) <= 0.02 * rate);
    CHECK(static_cast<double>(bytes) > 0.015 * rate);
}

TEST_CASE("in the background a train that no second has room for is as short as it must be", "[model]") {
    const auto truth = test::systems().at(2).truth;  // gigabit: 2.4 MB in a second
    test::FormulaLink link(truth, 0, 1);
    Prober prober({.kind = ProbeKind::full,
                   .expected = truth,
                   .max_bytes = 16384,
                   .large_bytes = 1 << 19,
                   .grid = 8,
                   .rounds = 4});
    const auto& outcome = run(prober, link, Application::sending);
    const double most = 0.02 * 1e9 / truth.range(1).G.ns;
    std::uint32_t largest = 0;
    for (const auto& sample : prober.samples()) {
        CHECK(static_cast<double>(sample.train.all_bytes()) <= most);
        if (sample.train.bytes == 1 << 19) largest = std::max(largest, sample.train.n);
    }
    CHECK(largest == 3);
    CHECK(outcome.missing.empty());
    CHECK(test::worst_error(outcome.assessment.model, truth).error < 0.03);
}

// Whether a model from before still holds, by a few messages.
#include <catch2/catch.hpp>

#include "unit/model_worlds.hpp"

using namespace railmux;
using model::Application;
using model::ProbeKind;
using model::Prober;
using model::Verdict;

TEST_CASE("eight messages tell whether a stored model still holds", "[model]") {
    for (const auto& system : test::systems()) {
        for (std::uint64_t seed = 0; seed < 50; ++seed) {
            CAPTURE(system.name, seed);
            test::FormulaLink link(system.truth, test::tenth(system.truth), seed);
            auto stored = system.truth;
            stored.jitter = Nanos(test::tenth(system.truth) * 0.6);
            Prober same({.kind = ProbeKind::verify, .expected = stored});
            CHECK(run(same, link).verdict == Verdict::verified);
            CHECK(same.outcome().cost.messages <= 8);
            CHECK(same.outcome().assessment.model == stored);
            for (auto& range : stored.ranges) range.G.ns *= 10;
            for (auto& range : stored.ranges) range.L.fixed *= 2;
            Prober other({.kind = ProbeKind::verify, .expected = stored});
            CHECK(run(other, link).verdict == Verdict::disagrees);
        }
    }
}

TEST_CASE("eight messages tell how long the way is to another rail of the kind", "[model]") {
    for (const auto& system : test::systems()) {
        for (std::uint64_t seed = 0; seed < 50; ++seed) {
            CAPTURE(system.name, seed);
            auto known = system.truth;
            known.jitter = Nanos(test::tenth(system.truth) * 0.6);
            known.half_round_trip = known.predict(1).delivery;
            auto truth = system.truth;
            const auto farther = Nanos(1.8 * test::tenth(system.truth));
            for (auto& range : truth.ranges) range.L.fixed += farther;
            test::FormulaLink link(truth, test::tenth(system.truth), seed);
            Prober other({.kind = ProbeKind::verify, .expected = known, .of_another = true});
            const auto& outcome = run(other, link);
            if (outcome.verdict == Verdict::disagrees) continue;  // noise on top: it is measured then
            REQUIRE(outcome.verdict == Verdict::verified);
            const auto& found = outcome.assessment.model;
            for (std::size_t i = 0; i < known.ranges.size(); ++i) {
                const auto longer = found.ranges[i].L.fixed - known.ranges[i].L.fixed;
                CHECK(longer.count() == Approx((found.half_round_trip - known.half_round_trip).count()));
                CHECK(longer.count() >= 0.99 * farther.count());
                CHECK(found.ranges[i].G == known.ranges[i].G);
            }

            test::FormulaLink same(system.truth, 0, seed);
            Prober near({.kind = ProbeKind::verify, .expected = known, .of_another = true});
            CHECK(run(near, same).assessment.model == known);  // nothing that jitter does not explain
        }
    }
}

TEST_CASE("a model that was measured while hardly anything could run does not hold for everything", "[model]") {
    for (const auto& system : test::systems()) {
        CAPTURE(system.name);
        test::FormulaLink link(system.truth, 0, 1);
        auto stored = system.truth;
        stored.jitter = Nanos(1e9);
        Prober prober({.kind = ProbeKind::verify, .expected = stored});
        CHECK(run(prober, link).verdict == Verdict::disagrees);
    }
}

TEST_CASE("what a large message takes says nothing of the way", "[model]") {
    for (const auto& system : test::systems()) {
        CAPTURE(system.name);
        auto truth = system.truth;
        for (auto& range : truth.ranges) range.G.ns *= 1.1;
        test::FormulaLink link(truth, 0, 1);
        Prober prober({.kind = ProbeKind::verify, .expected = system.truth, .of_another = true});
        base::Nanoseconds now = 0;
        for (auto action = prober.next(now, Application::idle); action.kind == model::Action::Kind::send;
             action = prober.next(now, Application::idle)) {
            if (action.train.bytes == 1) {
                prober.lost(now += base::second);
            } else {
                const auto sample = link.measure(action.train, now);
                prober.answered(sample, now += sample.round_trip + 1000);
            }
        }
        CHECK(prober.outcome().verdict == Verdict::verified);
        CHECK(prober.outcome().assessment.model == system.truth);
    }
}

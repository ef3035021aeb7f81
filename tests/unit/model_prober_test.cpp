// Probes against systems of known parameters: what is found, and what it costs.
#include <catch2/catch.hpp>
#include <map>

#include "repeats.hpp"
#include "unit/model_worlds.hpp"

using namespace railmux;
using model::Application;
using model::ProbeKind;
using model::Prober;
using model::Verdict;

namespace {

constexpr double grid_step = 65536.0 / 32;

bool changes_found(const LogGP& found, const LogGP& truth) {
    if (found.ranges.size() != truth.ranges.size()) return false;
    for (std::size_t i = 0; i + 1 < truth.ranges.size(); ++i) {
        const auto off =
            static_cast<double>(found.ranges[i].up_to_bytes) - static_cast<double>(truth.ranges[i].up_to_bytes);
        if (std::abs(off) > grid_step) return false;
    }
    return true;
}

}  // namespace

TEST_CASE("every parameter of the systems is found on the simulated fabric", "[model][sim]") {
    for (const auto& system : test::systems()) {
        test::SimWorld world(system.truth, 0, 1);
        Prober prober(test::full_probe());
        const auto& outcome = world.run(prober);
        CAPTURE(system.name, to_text(outcome.assessment.model));
        CHECK(outcome.verdict == Verdict::measured);
        const auto worst = test::worst_error(outcome.assessment.model, system.truth);
        CAPTURE(worst.what);
        CHECK(worst.error < 0.03);
        CHECK(outcome.assessment.model.confidence() > 0.8);
        test::figures() << system.name << ": worst " << worst.error << " (" << worst.what << ")\n";
    }
}

TEST_CASE("noise on the simulated fabric moves no parameter far", "[model][sim]") {
    for (const auto& system : test::systems()) {
        for (const std::uint64_t seed : {1U, 2U, 3U}) {
            test::SimWorld world(system.truth, test::tenth(system.truth), seed);
            Prober prober(test::full_probe());
            const auto& outcome = world.run(prober);
            CAPTURE(system.name, seed, to_text(outcome.assessment.model));
            const auto worst = test::worst_error(outcome.assessment.model, system.truth);
            CAPTURE(worst.what);
            CHECK(worst.error < 0.08);
            test::figures() << system.name << " " << seed << ": worst " << worst.error << " (" << worst.what << ")\n";
        }
    }
}

TEST_CASE("two hundred noisy runs find every change of protocol and no other", "[model]") {
    const auto runs = static_cast<std::size_t>(test::repeats(200));
    for (const auto& system : test::systems()) {
        std::size_t found = 0;
        std::vector<double> errors;
        for (std::uint64_t seed = 0; seed < runs; ++seed) {
            test::FormulaLink link(system.truth, test::tenth(system.truth), seed);
            Prober prober(test::full_probe());
            const auto& outcome = run(prober, link);
            if (changes_found(outcome.assessment.model, system.truth)) ++found;
            const auto worst = test::worst_error(outcome.assessment.model, system.truth);
            errors.push_back(worst.error);
        }
        std::ranges::sort(errors);
        CAPTURE(system.name, found, errors.back());
        CHECK(found == runs);
        CHECK(errors.back() < 0.08);
        test::figures() << system.name << ": changes right in " << found << " of " << runs << ", worst error median "
                        << errors[runs / 2] << " max " << errors.back() << "\n";
    }
}

TEST_CASE("a mirror that is busy for 1 ms at random times changes nothing", "[model][sim]") {
    for (const auto& system : test::systems()) {
        test::SimWorld calm(system.truth, 0, 1), busy(system.truth, 0, 1);
        test::BusyTimes times(1e6, 4e6, 5);
        busy.mirror_busy = &times;
        Prober one(test::full_probe()), other(test::full_probe());
        const auto undisturbed = calm.run(one).assessment.model;
        const auto& outcome = busy.run(other);
        CAPTURE(system.name, to_text(undisturbed), to_text(outcome.assessment.model));
        const auto worst = test::worst_error(outcome.assessment.model, undisturbed);
        CAPTURE(worst.what);
        CHECK(worst.error < 0.05);
        CHECK(outcome.assessment.interrupted > 0);
        test::figures() << system.name << ": busy mirror " << worst.error << ", " << outcome.assessment.interrupted
                        << " samples interrupted\n";
    }
}

TEST_CASE("a quick probe keeps its limits and is about right", "[model][sim]") {
    for (const auto& system : test::systems()) {
        test::SimWorld world(system.truth, 0, 1);
        Prober prober({.kind = ProbeKind::quick});
        const auto& outcome = world.run(prober);
        const auto& found = outcome.assessment.model;
        CAPTURE(system.name, to_text(found), outcome.cost.messages, outcome.cost.bytes, outcome.took);
        CHECK(outcome.verdict == Verdict::measured);
        CHECK(outcome.cost.messages <= 64);
        CHECK(outcome.cost.bytes <= 256 << 10);
        CHECK(outcome.took <= 10 * base::millisecond);
        for (const std::uint64_t size : {1U, 100U, 1000U, 4000U}) {
            CHECK(found.predict(size).delivery.count() ==
                  Approx(system.truth.predict(size).delivery.count()).epsilon(0.05));
            CHECK(found.predict(size).rail.count() == Approx(system.truth.predict(size).rail.count()).epsilon(0.05));
        }
        test::figures() << system.name << ": quick " << outcome.cost.messages << " messages, " << outcome.cost.bytes
                        << " bytes, " << static_cast<double>(outcome.took) / 1e6 << " ms\n";
    }
}

TEST_CASE("a quick probe of a rail far from its prior keeps its limits", "[model]") {
    for (const double factor : {0.01, 100.0}) {
        for (const auto& system : test::systems()) {
            auto expected = system.truth;
            for (auto& r : expected.ranges) {
                r.L.fixed *= factor;
                r.g *= factor;
                r.G.ns *= factor;
            }
            test::FormulaLink link(system.truth, test::tenth(system.truth), 3);
            Prober prober({.kind = ProbeKind::quick, .expected = expected});
            const auto& outcome = run(prober, link);
            CAPTURE(system.name, factor, outcome.cost.messages, outcome.cost.bytes, outcome.took);
            CHECK(outcome.verdict == Verdict::measured);
            CHECK(outcome.cost.messages <= 64);
            CHECK(outcome.cost.bytes <= 256 << 10);
            CHECK(outcome.took <= 10 * base::millisecond);
        }
    }
}

TEST_CASE("a quick probe whose large messages were all held up has no more than twice G a byte besides", "[model]") {
    auto truth = test::systems().front().truth;
    for (auto& range : truth.ranges) range.L.per_byte.ns = 40 * range.G.ns;
    test::FormulaLink link(truth, 0, 3);
    Prober quick({.kind = ProbeKind::quick});
    for (const auto& range : run(quick, link).assessment.model.ranges) {
        CHECK(range.L.per_byte.ns <= 2 * range.G.ns);
        CHECK(range.L.per_byte.ns > range.G.ns);
    }
}

TEST_CASE("samples of a mirror that hardly looks are better than none, those of one that sleeps are not", "[model]") {
    const auto probe = [](base::Nanoseconds blind) {
        Prober prober({.kind = ProbeKind::quick});
        base::Nanoseconds now = 0;
        for (auto action = prober.next(now, Application::idle); action.kind == model::Action::Kind::send;
             action = prober.next(now, Application::idle)) {
            const auto took = static_cast<base::Nanoseconds>(20'000 + 10 * action.train.bytes) + 5000 * action.train.n +
                              blind + (action.train.n - 1) * action.train.delay;
            now += took;
            prober.answered({.train = action.train,
                             .round_trip = took,
                             .idle = (action.train.n - 1) * action.train.delay,
                             .mirror_blind = blind},
                            now);
        }
        return prober.outcome();
    };
    const auto rarely = probe(5000);
    CHECK(rarely.verdict == Verdict::measured);
    CHECK(rarely.assessment.model.confidence() <= 0.5);
    CHECK(rarely.assessment.model.half_round_trip.count() == Approx(12'500).epsilon(0.05));
    CHECK(probe(10 * base::millisecond).verdict == Verdict::too_little);
    CHECK(probe(100).assessment.model.half_round_trip.count() == Approx(12'500).epsilon(0.05));
}

TEST_CASE("ten probes of one rail agree", "[model]") {
    for (const auto& system : test::systems()) {
        const auto noise = test::tenth(system.truth);
        std::vector<LogGP> found;
        for (std::uint64_t seed = 0; seed < 10; ++seed) {
            test::FormulaLink link(system.truth, noise, 1000 + seed);
            Prober prober(test::full_probe());
            found.push_back(run(prober, link).assessment.model);
        }
        CAPTURE(system.name);
        const auto spread = [&](auto parameter) {
            const auto less = [&](const LogGP& a, const LogGP& b) { return parameter(a) < parameter(b); };
            const auto [least, most] = std::ranges::minmax_element(found, less);
            return parameter(*most) / parameter(*least) - 1;
        };
        CHECK(spread([](const LogGP& m) { return m.ranges.front().G.ns; }) < 0.05);
        CHECK(spread([](const LogGP& m) { return m.ranges.front().g.count(); }) < 0.15);
        CHECK(spread([](const LogGP& m) { return m.ranges.front().L.of(1).count(); }) < 0.15);
        CHECK(spread([](const LogGP& m) { return m.ranges.front().o_s.of(1).count(); }) < 0.15);
    }
}

TEST_CASE("where a byte takes no time large messages are measured in every round", "[model]") {
    const double rate = GENERATE(0.2, 2.0);
    auto truth = test::systems().front().truth;
    truth.ranges = {
        {.L = {Nanos(5000), {}}, .o_s = {Nanos(500), {}}, .o_r = {Nanos(500), {}}, .g = Nanos(1000), .G = {rate}}};
    test::FormulaLink link(truth, 0, 1);
    auto options = test::full_probe();
    options.large_bytes = 1 << 20;
    Prober prober(options);
    const auto& outcome = run(prober, link);
    REQUIRE(outcome.assessment.sizes.back().bytes == 1 << 20);
    CHECK(outcome.assessment.sizes.back().single.kept == (rate < 1 ? 10 : 4));
    CHECK(test::worst_error(outcome.assessment.model, truth).error < 0.03);
}

TEST_CASE("large messages go in trains as long as those of small ones", "[model]") {
    auto truth = test::systems().front().truth;
    truth.ranges = {
        {.L = {Nanos(5000), {}}, .o_s = {Nanos(500), {}}, .o_r = {Nanos(500), {}}, .g = Nanos(1000), .G = {0.2}}};
    test::FormulaLink link(truth, 0, 1);
    auto options = test::full_probe();
    options.large_bytes = 1 << 20;
    Prober prober(options);
    run(prober, link);
    std::map<std::uint64_t, std::uint32_t> longest;
    for (const auto& sample : prober.samples()) {
        CHECK(sample.train.n <= options.n);
        if (sample.train.delay > 0) continue;
        auto& n = longest[sample.train.bytes];
        n = std::max(n, sample.train.n);
    }
    CHECK(longest.rbegin()->first == 1 << 20);
    for (const auto& [bytes, n] : longest) {
        CAPTURE(bytes);
        CHECK(n == options.n);
    }
}

// Probes against systems of known parameters: what is found, and what it costs.
#include <catch2/catch.hpp>
#include <map>

#include "model/prior.hpp"
#include "repeats.hpp"
#include "unit/model_worlds.hpp"

using namespace railmux;
using model::Application;
using model::ProbeKind;
using model::Prober;
using model::Verdict;

namespace {

/// One-sided noise of a tenth of what a byte takes.
double tenth(const LogGP& truth) { return 0.1 * truth.predict(1).delivery.count(); }

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

/// To its end, over a link that loses the trains for which `loses` says so.
template <typename Loses>
void run_losing(Prober& prober, test::FormulaLink& link, Loses loses) {
    base::Nanoseconds now = 0;
    for (auto action = prober.next(now, Application::idle); action.kind != model::Action::Kind::finished;
         action = prober.next(now, Application::idle)) {
        if (action.kind == model::Action::Kind::wait) {
            now = action.until;
        } else if (loses(action.train)) {
            prober.lost(now += base::second);
        } else {
            const auto sample = link.measure(action.train, now);
            now += sample.round_trip + 1000;
            prober.answered(sample, now);
        }
    }
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
            test::SimWorld world(system.truth, tenth(system.truth), seed);
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
            test::FormulaLink link(system.truth, tenth(system.truth), seed);
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
            test::FormulaLink link(system.truth, tenth(system.truth), 3);
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

TEST_CASE("eight messages tell whether a stored model still holds", "[model]") {
    for (const auto& system : test::systems()) {
        for (std::uint64_t seed = 0; seed < 50; ++seed) {
            CAPTURE(system.name, seed);
            test::FormulaLink link(system.truth, tenth(system.truth), seed);
            auto stored = system.truth;
            stored.jitter = Nanos(tenth(system.truth) * 0.6);
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
            known.jitter = Nanos(tenth(system.truth) * 0.6);
            known.half_round_trip = known.predict(1).delivery;
            auto truth = system.truth;
            const auto farther = Nanos(1.8 * tenth(system.truth));
            for (auto& range : truth.ranges) range.L.fixed += farther;
            test::FormulaLink link(truth, tenth(system.truth), seed);
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

TEST_CASE("a probe whose answers get lost ends", "[model]") {
    Prober prober({.kind = ProbeKind::quick});
    base::Nanoseconds now = 0;
    int sent = 0;
    while (prober.next(now, Application::idle).kind == model::Action::Kind::send) {
        ++sent;
        prober.lost(now += base::millisecond);
    }
    CHECK(sent <= 3);
    CHECK(prober.outcome().verdict == Verdict::too_little);
}

TEST_CASE("a full probe that loses all large messages says what it measured, and what is missing", "[model]") {
    const std::uint64_t lost_from = GENERATE(1, 2, 20'000, 40'000, 65'536);
    const auto truth = test::systems().at(2).truth;
    test::FormulaLink link(truth, 0, 1);
    Prober prober(test::full_probe());
    std::uint32_t lost = 0;
    run_losing(prober, link, [&](const model::Train& train) {
        const bool gone = train.bytes >= lost_from;
        lost += gone ? 1 : 0;
        return gone;
    });
    const auto& outcome = prober.outcome();
    CAPTURE(lost_from, lost, to_text(outcome.assessment.model));
    CHECK(lost <= 9);
    CHECK(outcome.lost == lost);
    if (lost_from == 1) {
        CHECK(outcome.verdict == Verdict::too_little);
        return;
    }
    REQUIRE_FALSE(outcome.missing.empty());
    CHECK(outcome.interrupted.empty());
    CHECK(outcome.missing.front() >= lost_from);
    CHECK(outcome.missing.back() == 65'536);
    if (lost_from == 2) return;  // of a single size there is nothing to be said of the bandwidth
    CHECK(outcome.verdict == Verdict::measured);
    CHECK(outcome.assessment.sizes.back().bytes < lost_from);
    CHECK(test::worst_error(outcome.assessment.model, truth).error < 0.03);
    const auto sure = outcome.assessment.model.confidence();
    const auto whole = static_cast<double>(outcome.assessment.sizes.size());
    CHECK(sure <= whole / (whole + static_cast<double>(outcome.missing.size())));
    CHECK(sure > 0.2);
}

TEST_CASE("a full probe tells what was lost from what was answered while a process was away", "[model]") {
    const bool lose_too = GENERATE(false, true);
    const std::uint64_t away_from = 20'000, away_to = 30'000, lost_from = 60'000;
    const auto truth = test::systems().at(2).truth;
    test::FormulaLink link(truth, 0, 1);
    Prober prober(test::full_probe());
    base::Nanoseconds now = 0;
    std::uint32_t lost = 0;
    for (auto action = prober.next(now, Application::idle); action.kind != model::Action::Kind::finished;
         action = prober.next(now, Application::idle)) {
        const auto bytes = action.train.bytes;
        if (action.kind == model::Action::Kind::wait) {
            now = action.until;
        } else if (lose_too && bytes >= lost_from) {
            ++lost;
            prober.lost(now += base::second);
        } else {
            auto sample = link.measure(action.train, now);
            // Trains of several, too, but for those that are to show a receive: nothing else is clean of such a size.
            if (bytes >= away_from && bytes <= away_to && action.train.late_look == 0) {
                sample.mirror_blind = 2 * sample.round_trip;
                sample.round_trip += sample.mirror_blind;
            }
            now += sample.round_trip + 1000;
            prober.answered(sample, now);
        }
    }
    const auto& outcome = prober.outcome();
    CHECK(outcome.verdict == Verdict::measured);
    CHECK(outcome.lost == lost);
    CHECK(outcome.missing.empty() != lose_too);
    CHECK(std::ranges::all_of(outcome.missing, [](auto bytes) { return bytes >= lost_from; }));
    REQUIRE_FALSE(outcome.interrupted.empty());
    CHECK(outcome.interrupted.front() >= away_from);
    CHECK(outcome.interrupted.back() <= away_to);
    const auto& measured = outcome.assessment.sizes;
    const auto sizes = static_cast<double>(measured.size());
    const auto not_measured = static_cast<double>(outcome.missing.size() + outcome.interrupted.size());
    CHECK(outcome.assessment.model.confidence() <= sizes / (sizes + not_measured));
}

TEST_CASE("a few answers that get lost cost a full probe nothing", "[model]") {
    const auto truth = test::systems().at(2).truth;
    test::FormulaLink link(truth, 0, 1);
    Prober prober(test::full_probe());
    std::uint32_t trains = 0;
    run_losing(prober, link, [&](const model::Train&) { return ++trains % 700 == 0; });
    CHECK(prober.outcome().lost >= 3);
    CHECK(prober.outcome().verdict == Verdict::measured);
    CHECK(prober.outcome().missing.empty());
    CHECK(test::worst_error(prober.outcome().assessment.model, truth).error < 0.03);
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
        const auto noise = tenth(system.truth);
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

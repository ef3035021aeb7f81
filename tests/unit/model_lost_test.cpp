// Probes whose answers get lost, or come from a process that was away.
#include <catch2/catch.hpp>

#include "unit/model_worlds.hpp"

using namespace railmux;
using model::Application;
using model::ProbeKind;
using model::Prober;
using model::Verdict;

namespace {

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

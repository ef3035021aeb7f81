#include "sched/rate_turns.hpp"

#include <catch2/catch.hpp>

#include <array>

using namespace railmux;
using sched::Candidate;
using sched::RateTurns;
using sched::to_ticks;

namespace {

using base::millisecond;

/// A rail of 8 ns a byte and one of 80, as was learnt, or others; what is given to the slow one is timed.
struct FastAndSlow {
    std::array<Candidate, 2> candidates{Candidate{.rail = 0}, Candidate{.rail = 1}};
    std::array<sched::Pace, 2> paces{};
    RateTurns turns;
    base::Nanoseconds now = base::second;

    explicit FastAndSlow(double fast = 8, double slow = 80) {
        for (std::size_t i = 0; i < 2; ++i) {
            candidates[i].shown = to_ticks(i == 0 ? fast : slow);
            paces[i].measured(candidates[i].shown, 0);
        }
        turns.begin(candidates, now);
    }
    /// The slow one takes so long over a message of 4 KiB, each millisecond.
    void pass(base::Nanoseconds service, base::Nanoseconds time) {
        for (const auto end = now + time; now < end; now += millisecond) {
            const sched::Passage passage{.bytes = 4096, .service = service, .by_host = true};
            paces[1].lone(passage, candidates[1].shown, now, 0);
            turns.follow(candidates, paces, now);
        }
    }
    [[nodiscard]] double slow() const { return sched::to_ns(candidates[1].turn); }
};

}  // namespace

TEST_CASE("turns begin with what was shown, and a slow rail is given less than that", "[sched][spread]") {
    const FastAndSlow rails;
    CHECK(rails.candidates[0].turn == to_ticks(8.0));
    CHECK(rails.slow() == Approx(89));
}

TEST_CASE("turns: a rail that holds up what it is given is given less, at once", "[sched][spread]") {
    FastAndSlow rails;
    rails.pass(base::microsecond, 10 * millisecond);
    rails.pass(200 * base::microsecond, 100 * millisecond);
    CHECK(rails.slow() > 89 * 1.2);
    CHECK(rails.slow() < 89 * 1.4);
    rails.pass(200 * base::microsecond, 10 * base::second);
    CHECK(rails.slow() <= 89 * 1.5);  // that may have other reasons
    CHECK(rails.candidates[0].turn == to_ticks(8.0));
}

TEST_CASE("turns: a rail that passes all at once is given more, until that was too much", "[sched][spread]") {
    FastAndSlow rails;
    rails.pass(base::microsecond, 250 * millisecond);
    CHECK(rails.slow() == Approx(89 * 0.95).epsilon(0.02));
    rails.pass(200 * base::microsecond, 40 * millisecond);
    const auto less = rails.slow();
    CHECK(less > 89 * 0.98);
    rails.pass(base::microsecond, 250 * millisecond);
    CHECK(rails.slow() == Approx(less * 0.98).epsilon(0.01));
    rails.pass(base::microsecond, 10 * base::second);
    CHECK(rails.slow() == Approx(89 * 0.75));
    rails.turns.begin(rails.candidates, rails.now);
    CHECK(rails.slow() == Approx(89));
}

TEST_CASE("turns: one message that was held up says nothing, nor does a rail that does not count", "[sched][spread]") {
    FastAndSlow rails;
    rails.pass(base::microsecond, 100 * millisecond);
    const auto before = rails.slow();
    rails.pass(200 * base::microsecond, millisecond);
    rails.pass(base::microsecond, 50 * millisecond);
    CHECK(rails.slow() < before);
    rails.candidates[1].spare = true;
    rails.pass(200 * base::microsecond, 100 * millisecond);
    CHECK(rails.slow() < before);
}

TEST_CASE("turns: a rail that passes nothing at once is as slow as it is", "[sched][spread]") {
    FastAndSlow rails;
    rails.pass(4096 * 80, 10 * base::second);
    CHECK(rails.slow() == Approx(89));
}

TEST_CASE("turns: where nothing was timed, nothing is known", "[sched][spread]") {
    FastAndSlow rails;
    rails.pass(base::microsecond, 10 * millisecond);
    rails.pass(200 * base::microsecond, 30 * millisecond);
    rails.now += 100 * millisecond;
    rails.turns.follow(rails.candidates, rails.paces, rails.now);
    const auto before = rails.slow();
    rails.now += 100 * millisecond;  // nothing was timed
    rails.turns.follow(rails.candidates, rails.paces, rails.now);
    CHECK(rails.slow() == before);
}

TEST_CASE("turns of the fastest rails move both ways", "[sched][spread]") {
    FastAndSlow rails(0.05, 0.5);
    const auto first = rails.candidates[1].turn;
    rails.pass(0, 200 * millisecond);
    CHECK(rails.candidates[1].turn < first);
}

TEST_CASE("turns: where traffic has shown nothing for sure, nominal speeds count if they differ", "[sched][spread]") {
    constexpr std::uint64_t gbit = 1'000'000'000;
    std::array<sched::Candidate, 2> candidates{
        sched::Candidate{.rail = 0, .nominal = sched::nominal_per_byte(gbit), .supposed = true},
        sched::Candidate{
            .rail = 1, .nominal = sched::nominal_per_byte(gbit / 10), .shown = 200 * 1024, .supposed = true}};
    const auto suppose = [&] { sched::suppose_rates(candidates); };
    SECTION("also instead of what is in doubt") {
        suppose();
        CHECK(candidates[0].shown == 8 * 1024);
        CHECK(candidates[1].shown == 80 * 1024);
        sched::RateTurns turns;
        turns.begin(candidates, 0);
        CHECK(candidates[1].turn == 80 * 1024);  // as it is
    }
    SECTION("but not instead of what is sure") {
        candidates[1].shown = 90 * 1024;
        candidates[1].supposed = false;
        suppose();
        CHECK(candidates[0].shown == 8 * 1024);
        CHECK(candidates[1].shown == 90 * 1024);
    }
    SECTION("nor where any is known to be wrong") {
        candidates[1].supposed = GENERATE(false, true);
        candidates[1].shown = (candidates[1].supposed ? 400 : 200) * 1024;
        suppose();
        CHECK(candidates[0].shown == 0);
    }
    SECTION("nor where they are all the same, or nobody knows") {
        candidates[1].nominal = GENERATE(0, 8 * 1024);
        suppose();
        CHECK(candidates[0].shown == 0);
        CHECK(candidates[1].shown == 200 * 1024);
    }
    SECTION("a spare rail has no part in it") {
        candidates[0].spare = true;
        suppose();
        CHECK(candidates[0].shown == 0);
    }
}

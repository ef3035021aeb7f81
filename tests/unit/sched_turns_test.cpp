#include "sched/turns.hpp"

#include <catch2/catch.hpp>

#include <array>

using namespace railmux;
using sched::Candidate;
using sched::to_ticks;
using sched::Turns;

namespace {

constexpr auto ms = base::millisecond;

/// A rail of 8 ns a byte and one of 80, as was learnt; of the slow one each byte that is given to it is timed.
struct Rails {
    std::array<Candidate, 2> candidates{Candidate{.rail = 0, .shown = to_ticks(8.0)},
                                        Candidate{.rail = 1, .shown = to_ticks(80.0)}};
    std::array<sched::Pace, 2> paces{};
    Turns turns;
    base::Nanoseconds now = base::second;

    Rails() {
        paces[0].measured(to_ticks(8.0), 0);
        paces[1].measured(to_ticks(80.0), 0);
        turns.begin(candidates, now);
    }
    /// The slow one takes so long over a message of 4 KiB, each millisecond.
    void pass(base::Nanoseconds service, base::Nanoseconds time) {
        for (const auto end = now + time; now < end; now += ms) {
            const sched::Passage passage{.bytes = 4096, .service = service, .by_host = true};
            paces[1].lone(passage, to_ticks(80.0), now, 0);
            turns.follow(candidates, paces, now);
        }
    }
    [[nodiscard]] double slow() const { return sched::to_ns(candidates[1].turn); }
};

}  // namespace

TEST_CASE("turns begin with what was shown, and a slow rail is given less than that", "[sched][spread]") {
    const Rails rails;
    CHECK(rails.candidates[0].turn == to_ticks(8.0));
    CHECK(rails.slow() == Approx(89));
}

TEST_CASE("turns: a rail that holds up what it is given is given less, at once", "[sched][spread]") {
    Rails rails;
    rails.pass(200 * base::microsecond, 100 * ms);
    CHECK(rails.slow() > 89 * 1.2);
    CHECK(rails.slow() < 89 * 1.5);
    rails.pass(200 * base::microsecond, 10 * base::second);
    CHECK(rails.slow() <= 2 * 89);  // that may have other reasons
    CHECK(rails.candidates[0].turn == to_ticks(8.0));
}

TEST_CASE("turns: a rail that passes all at once is given more, until that was too much", "[sched][spread]") {
    Rails rails;
    rails.pass(base::microsecond, 250 * ms);
    CHECK(rails.slow() == Approx(89 * 0.95).epsilon(0.02));
    rails.pass(200 * base::microsecond, 40 * ms);
    const auto less = rails.slow();
    CHECK(less > 89 * 0.98);
    rails.pass(base::microsecond, 250 * ms);
    CHECK(rails.slow() == Approx(less * 0.98).epsilon(0.01));
    rails.pass(base::microsecond, 10 * base::second);
    CHECK(rails.slow() == Approx(89 * 0.75));
    rails.turns.begin(rails.candidates, rails.now);
    CHECK(rails.slow() == Approx(89));
}

TEST_CASE("turns: one message that was held up says nothing, nor does a rail that does not count", "[sched][spread]") {
    Rails rails;
    rails.pass(base::microsecond, 100 * ms);
    const auto before = rails.slow();
    rails.pass(200 * base::microsecond, ms);
    rails.pass(base::microsecond, 50 * ms);
    CHECK(rails.slow() < before);
    rails.candidates[1].spare = true;
    rails.pass(200 * base::microsecond, 100 * ms);
    CHECK(rails.slow() < before);
}

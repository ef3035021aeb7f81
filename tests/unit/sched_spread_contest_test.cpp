#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

#include "sched/spread_contest.hpp"

using namespace railmux;
using sched::Spread;
using sched::SpreadContest;

namespace {

constexpr auto us = base::microsecond;
constexpr auto ms = base::millisecond;

/// What a message takes, there or back, each way.
using Takes = std::array<base::Nanoseconds, sched::spreads>;

constexpr auto at(Spread way) { return static_cast<std::size_t>(way); }

/// One of two processes that send bursts to and fro.
struct Side {
    SpreadContest contest{};
    SpreadContest::Score score{};
    bool follows = false;
    std::array<std::uint32_t, sched::spreads> bursts{};

    [[nodiscard]] Spread way(Spread there = Spread::predicted) const { return contest.spread(there); }
    void send(std::uint64_t bytes, base::Nanoseconds now) {
        ++score.handed;
        contest.went(bytes, score, follows, now);
    }
    void arrived() { score.sent = score.handed; }
    void receive(std::uint32_t messages) {
        score.received += messages;
        score.heavy_received += messages;
    }
};

void compute(Side& side, base::Nanoseconds& now, base::Nanoseconds time) {
    now += time;
    side.score.lulls += time;
}

/// For so long, bursts of so many messages, there and back, where the other side does the same.
void run(Side& side, const Takes& takes, base::Nanoseconds& now, base::Nanoseconds time, std::uint32_t burst = 1,
         std::uint64_t bytes = 4096) {
    for (const auto end = now + time; now < end;) {
        side.send(bytes, now);
        const auto way = side.way();
        ++side.bursts[at(way)];
        for (std::uint32_t i = 1; i < burst; ++i) side.send(bytes, now);
        side.arrived();
        side.receive(burst);
        now += 2 * burst * takes[at(way)];
    }
}

}  // namespace

TEST_CASE("bursts: the way that takes least is found, whichever it is", "[sched][spread]") {
    const auto best = GENERATE(Spread::predicted, Spread::by_rate, Spread::in_turn, Spread::single);
    const auto burst = GENERATE(1U, 8U, 32U);
    Takes takes{17 * us, 17 * us, 17 * us, 17 * us};
    takes[at(best)] = 15 * us;
    Side side;
    base::Nanoseconds now = us;
    run(side, takes, now, 300 * ms, burst);
    side.bursts = {};
    run(side, takes, now, 10 * base::second, burst);
    const auto all = side.bursts[0] + side.bursts[1] + side.bursts[2] + side.bursts[3];
    CAPTURE(at(best), burst, all);
    CHECK(side.bursts[at(best)] > all - all / 16);
}

TEST_CASE("bursts: the way that takes least is found by those who compute in between, too", "[sched][spread]") {
    const auto best = GENERATE(Spread::by_rate, Spread::in_turn, Spread::single);
    const auto phase = GENERATE(5 * ms, 15 * ms);
    Takes takes{17 * us, 17 * us, 17 * us, 17 * us};
    takes[at(best)] = 15 * us;
    Side side;
    base::Nanoseconds now = us;
    const auto phases = [&](base::Nanoseconds time) {
        for (const auto end = now + time; now < end; compute(side, now, 80 * ms)) run(side, takes, now, phase, 8);
    };
    phases(300 * ms * (80 * ms / phase));
    side.bursts = {};
    phases(20 * base::second);
    const auto all = side.bursts[0] + side.bursts[1] + side.bursts[2] + side.bursts[3];
    CAPTURE(at(best), phase, all);
    CHECK(side.bursts[at(best)] > all - all / 8);
}

TEST_CASE("bursts: between two of them the process may compute for as long as it likes", "[sched][spread]") {
    const auto best = GENERATE(Spread::predicted, Spread::by_rate, Spread::in_turn, Spread::single);
    const auto computes = GENERATE(2 * ms, 15 * ms, 100 * ms);
    Takes takes{17 * us, 17 * us, 17 * us, 17 * us};
    takes[at(best)] = 15 * us;
    Side side;
    base::Nanoseconds now = us;
    const auto bursts = [&](int count) {
        for (int i = 0; i < count; ++i, compute(side, now, (i % 3 + 1) * computes / 2)) run(side, takes, now, us, 8);
    };
    bursts(2000);
    side.bursts = {};
    bursts(10'000);
    CAPTURE(at(best), computes);
    CHECK(side.bursts[at(best)] > 8'500);
}

TEST_CASE("bursts: those that take long are no pauses", "[sched][spread]") {
    Side side;
    base::Nanoseconds now = us;
    const Takes takes{2 * ms, 2 * ms, 20 * ms, 2 * ms};  // 32 and 320 ms, there and back
    run(side, takes, now, 20 * base::second, 8);
    REQUIRE(side.bursts[at(Spread::in_turn)] > 0);
    side.bursts = {};
    run(side, takes, now, 100 * base::second, 8);
    CHECK(side.bursts[at(Spread::in_turn)] * 320 * ms < 100 * base::second / 20);
}

TEST_CASE("bursts: a way that takes four times as long costs a hundredth or two", "[sched][spread]") {
    Side side;
    base::Nanoseconds now = us;
    const Takes takes{17 * us, 17 * us, 70 * us, 17 * us};
    run(side, takes, now, base::second, 8);
    CHECK(side.bursts[at(Spread::in_turn)] > 0);
    side.bursts = {};
    run(side, takes, now, 10 * base::second, 8);
    CHECK(side.bursts[at(Spread::in_turn)] * 70 * 16 * us < 10 * base::second / 50);
}

TEST_CASE("bursts: turns by rate are tried only where there are rates", "[sched][spread]") {
    Side side{.score = {.rates_shown = false}};
    base::Nanoseconds now = us;
    const Takes takes{17 * us, 15 * us, 17 * us, 17 * us};
    run(side, takes, now, base::second, 8);
    CHECK(side.bursts[at(Spread::in_turn)] > 0);
    CHECK(side.bursts[at(Spread::by_rate)] == 0);
    side.score.rates_shown = true;
    run(side, takes, now, 100 * ms, 8);
    CHECK(side.way() == Spread::by_rate);
}

TEST_CASE("bursts: where nobody knows rates, what may show them is tried for longer, each time", "[sched][spread]") {
    const bool shown = GENERATE(false, true);
    Side side{.score = {.rates_shown = shown}};
    base::Nanoseconds now = us;
    const Takes takes{17 * us, 17 * us, 70 * us, 17 * us};
    base::Nanoseconds longest = 0;
    for (int trials = 0; trials < 3; ++trials) {
        while (side.way() != Spread::in_turn) run(side, takes, now, us, 8);
        const auto begun = now;
        while (side.way() == Spread::in_turn) run(side, takes, now, us, 8);
        longest = std::max(longest, now - begun);
        CHECK((now - begun >= 6 * ms) == !shown);
    }
    CHECK(longest < 16 * ms);
}

TEST_CASE("bursts: a way that lost before loses again sooner", "[sched][spread]") {
    Side side;
    base::Nanoseconds now = us;
    const Takes takes{17 * us, 17 * us, 17 * us, 19 * us};
    std::array<base::Nanoseconds, 3> trials{};
    for (auto& trial : trials) {
        while (side.way() != Spread::single) run(side, takes, now, us, 8);
        const auto begun = now;
        while (side.way() == Spread::single) run(side, takes, now, us, 8);
        trial = now - begun;
    }
    CHECK(trials[0] > 10 * ms);
    CHECK(trials[1] < 6 * ms);
    CHECK(trials[2] < 6 * ms);
}

TEST_CASE("bursts: a gain that does not last is no gain", "[sched][spread]") {
    Side side;
    base::Nanoseconds now = us;
    Takes takes{20 * us, 20 * us, 10 * us, 20 * us};
    run(side, takes, now, 500 * ms);
    REQUIRE(side.way() == Spread::in_turn);
    takes[at(Spread::in_turn)] = 25 * us;
    run(side, takes, now, 500 * ms);
    CHECK(side.way() != Spread::in_turn);
    takes = {20 * us, 20 * us, 10 * us, 20 * us};
    side = {};
    run(side, takes, now, 500 * ms);
    REQUIRE(side.way() == Spread::in_turn);
    takes[at(Spread::in_turn)] = 100 * us;  // the rails have changed: nothing is known
    run(side, takes, now, 100 * ms);
    CHECK(side.way() != Spread::in_turn);
}

TEST_CASE("bursts: what gains for a moment whenever it is taken is tried ever more rarely", "[sched][spread]") {
    Side side;
    base::Nanoseconds now = us;
    // Rails have saved something up for each time that it is taken.
    base::Nanoseconds since = 0;
    const auto go = [&](base::Nanoseconds time) {
        for (const auto end = now + time; now < end;) {
            const bool gains = side.way() == Spread::single && now - since < 40 * ms;
            const Takes takes{17 * us, 20 * us, 20 * us, gains ? 14 * us : 40 * us};
            if (side.way() != Spread::single) since = now;
            run(side, takes, now, us, 8);
        }
    };
    go(base::second);
    side.bursts = {};
    go(10 * base::second);
    const auto all = side.bursts[0] + side.bursts[1] + side.bursts[2] + side.bursts[3];
    CHECK(side.bursts[at(Spread::predicted)] > all / 100 * 95);
}

TEST_CASE("bursts: what is no burst, or none like those before, goes as predicted", "[sched][spread]") {
    Side side;
    base::Nanoseconds now = us;
    const Takes takes{20 * us, 20 * us, 10 * us, 20 * us};
    SECTION("a stream") {
        for (int i = 0; i < 100'000; ++i) {
            side.send(4096, now += us);
            side.score.sent = side.score.handed - 32;
        }
        CHECK_FALSE(side.contest.lone());
        CHECK(side.way() == Spread::predicted);
    }
    SECTION("a stream after bursts") {
        run(side, takes, now, 500 * ms);
        REQUIRE(side.way() == Spread::in_turn);
        for (int i = 0; i < 70; ++i) side.send(4096, now += us);
        CHECK(side.way() == Spread::predicted);
    }
    SECTION("messages that are rarer than anything shows") {
        for (int i = 0; i < 1000; ++i) {
            side.send(4096, now += 2 * base::second);
            side.arrived();
            CHECK(side.way() == Spread::predicted);
        }
    }
    SECTION("messages of another size") {
        run(side, takes, now, 500 * ms);
        REQUIRE(side.way() == Spread::in_turn);
        run(side, {10 * us, 20 * us, 20 * us, 20 * us}, now, 15 * ms, 1, 1024);
        CHECK(side.way() == Spread::predicted);
    }
}

TEST_CASE("bursts: a burst of a trial that does not end ends the trial", "[sched][spread]") {
    Side side;
    base::Nanoseconds now = us;
    const Takes takes{20 * us, 20 * us, 20 * us, 20 * us};
    while (side.way() == Spread::predicted) run(side, takes, now, us, 8);
    side.send(4096, now);
    REQUIRE(side.way() != Spread::predicted);
    side.send(4096, now += 8 * ms);
    CHECK(side.way() == Spread::predicted);
}

TEST_CASE("bursts: of two that send to each other one tries, and the other one does the same", "[sched][spread]") {
    Side side{.follows = true};
    base::Nanoseconds now = us;
    const Takes takes{20 * us, 20 * us, 10 * us, 20 * us};
    run(side, takes, now, 500 * ms);
    CHECK(side.bursts[at(Spread::predicted)] * 40 * us > 490 * ms);
    CHECK(side.way(Spread::in_turn) == Spread::in_turn);
    CHECK(side.way(Spread::single) == Spread::single);

    Side answered{.follows = true};  // by next to nothing: then nobody else would try
    for (const auto end = now + 500 * ms; now < end;) {
        answered.send(4096, now);
        now += 2 * takes[at(answered.way())];
        answered.arrived();
        ++answered.score.received;
    }
    CHECK(answered.way() == Spread::in_turn);
}

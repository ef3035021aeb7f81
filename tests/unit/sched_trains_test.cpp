// What Pace learns from trains, from trials, and of rails that are back.
#include <catch2/catch.hpp>

#include "sched/pace.hpp"
#include "sched_flow.hpp"
#include "sched_sizes.hpp"

using namespace railmux;
using sched::test::check_near;
using sched::test::Flow;
using test::kib;
using test::mib;

namespace {

/// Trains over a rail, one after the other.
struct Trains {
    sched::Pace pace;
    sched::Ticks thought;
    base::Nanoseconds now = 0;
    base::Nanoseconds busy = 0;

    void one(std::uint64_t bytes, double per_byte, base::Nanoseconds rest = 0) {
        const auto service = static_cast<base::Nanoseconds>(static_cast<double>(bytes) * per_byte);
        now += rest;
        pace.sent(bytes, now);
        now += service;
        pace.delivered(bytes);
        const auto known = pace.per_byte(busy, thought);
        pace.lone({bytes, 1, service}, known > 0 ? known : thought, now, busy);
        pace.settle(now, busy);
    }
};

/// Passes `burst` bytes at 0.1 ns each, and is filled again at its rate.
struct TokenBucket {
    double per_byte;
    double burst;
    double tokens = burst;
    base::Nanoseconds filled = 0;

    base::Nanoseconds send(std::uint64_t bytes, base::Nanoseconds now) {
        const auto size = static_cast<double>(bytes);
        tokens = std::min(burst, tokens + static_cast<double>(now - filled) / per_byte);
        const auto service = std::max(0.1 * size, (size - tokens) * per_byte);
        tokens += service / per_byte - size;
        filled = now + static_cast<base::Nanoseconds>(service);
        return static_cast<base::Nanoseconds>(service);
    }
};

}  // namespace

TEST_CASE("trains show the rate, and being late for two does not", "[sched][pace]") {
    Trains trains{.pace = {}, .thought = sched::to_ticks(base::Nanoseconds{2})};
    const auto thought = trains.thought;
    trains.one(64 * kib, 80);
    for (int i = 0; i < 100; ++i) trains.one(64 * kib, i % 2 == 0 ? 1.9 : 2.1);
    trains.one(64 * kib, 80);  // that may be the peer's doing
    for (int i = 0; i < 1000; ++i) trains.one(64 * kib, 2);
    for (int i = 0; i < 3; ++i) trains.one(64 * kib, 80);
    CHECK(trains.pace.per_byte(0, thought) <= thought);
    trains.one(64 * kib, 80);
    CHECK(trains.pace.per_byte() == sched::to_ticks(base::Nanoseconds{80}));
}

TEST_CASE("a peer that has many messages to handle does not look like a slow rail", "[sched][pace]") {
    constexpr std::uint64_t bytes = 8 * kib;
    const auto messages = GENERATE(std::uint32_t{1}, std::uint32_t{8});
    sched::Pace pace;
    base::Nanoseconds now = 0;
    for (int i = 0; i < 400; ++i) {
        pace.sent(bytes, now, true, messages);
        now += 50 * base::microsecond;
        pace.delivered(bytes);
        pace.lone({bytes, messages, 50 * base::microsecond}, sched::to_ticks(base::Nanoseconds{1}), now, now);
        pace.settle(now, now);
    }
    CHECK((pace.per_byte() > 0) == (messages == 1));
}

TEST_CASE("what a peer's host tells shows a rate by less lateness than what its process does", "[sched][pace]") {
    constexpr std::uint64_t bytes = 8 * kib;
    const bool by_host = GENERATE(false, true);
    sched::Pace pace;
    base::Nanoseconds now = 0;
    for (int i = 0; i < 400; ++i) {
        pace.sent(bytes, now);
        now += 20 * base::microsecond;
        pace.delivered(bytes);
        const sched::Passage passage{.bytes = bytes,
                                     .service = 20 * base::microsecond,
                                     .by_host = by_host,
                                     .end = {.time = now, .bytes = pace.handed()}};
        pace.lone(passage, sched::to_ticks(base::Nanoseconds{1}), now, now);
        pace.settle(now, now);
    }
    CHECK((pace.per_byte() > 0) == by_host);
}

TEST_CASE("a rate is counted from one end of a train to another, whenever that is told", "[sched][pace]") {
    // Told late by anything to 2 ms, when more has been handed over, and come through.
    constexpr std::uint64_t bytes = 64 * kib;
    sched::Pace pace;
    base::Nanoseconds end = 0;
    for (int i = 0; i < 60; ++i) {
        pace.sent(bytes, end);
        const sched::Mark mark{.time = end += bytes * 8, .bytes = pace.handed()};
        pace.delivered(bytes);
        pace.settle(end, end);
        const auto told = end + (i % 7) * 333 * base::microsecond;
        pace.lone({.bytes = bytes, .service = bytes * 8, .end = mark}, sched::to_ticks(base::Nanoseconds{1}), told,
                  told);
    }
    CHECK(sched::to_ns(pace.per_byte()) == Approx(8).epsilon(0.001));
}

TEST_CASE("what seems to have passed at once by a clock that is not known shows no more than that", "[sched][pace]") {
    constexpr std::uint64_t bytes = 50 * kib;
    for (const base::Nanoseconds longest : {0, 100, 500}) {
        sched::Pace pace;
        pace.sent(bytes, 0);
        const base::Nanoseconds now = 500 * base::microsecond;
        pace.delivered(bytes);
        const auto model = sched::to_ticks(base::Nanoseconds{8});
        pace.lone({.bytes = bytes, .longest_since_idle = longest * base::microsecond}, model, now, now);
        sched::Cost cost{.slope = model, .per_byte = model};
        static_cast<void>(pace.correct(cost, now, now));
        const auto most = std::max<base::Nanoseconds>(longest, 20) * base::microsecond;
        CHECK(cost.per_byte == std::min(model, sched::to_ticks(most) / static_cast<sched::Ticks>(bytes)));
    }
}

TEST_CASE("a model that a probe has too slow is corrected by what passes at once", "[sched][pace]") {
    Trains trains{.pace = {}, .thought = sched::to_ticks(base::Nanoseconds{8})};
    trains.one(64 * kib, 0.5);
    sched::Cost cost{.slope = sched::to_ticks(base::Nanoseconds{200}),
                     .per_byte = sched::to_ticks(base::Nanoseconds{8})};
    static_cast<void>(trains.pace.correct(cost, trains.now, trains.busy));
    CHECK(sched::to_ns(cost.per_byte) < 1);
    CHECK(sched::to_ns(cost.slope) < 2);
}

TEST_CASE("a rail that passes at once what it is thought to be slow for is thought a little faster", "[sched][pace]") {
    Trains trains{.pace = {}, .thought = sched::to_ticks(base::Nanoseconds{1})};
    trains.pace.measured(sched::to_ticks(base::Nanoseconds{8}), 0);
    CHECK_FALSE(trains.pace.saves_up(trains.now));
    for (int i = 0; i < 100; ++i) trains.one(32 * kib, 0.1, base::millisecond);
    CHECK(trains.pace.saves_up(trains.now));
    CHECK(sched::to_ns(trains.pace.per_byte()) == Approx(7));  // it may be no more than a burst
    CHECK_FALSE(trains.pace.saves_up(trains.now + 2 * base::second));
}

TEST_CASE("a guess that is tried, and right, is not taken for no time at all", "[sched][pace]") {
    sched::Pace pace;
    sched::Cost cost{.slope = sched::to_ticks(base::Nanoseconds{400}),
                     .per_byte = sched::to_ticks(base::Nanoseconds{400})};
    const auto best = sched::to_ticks(base::Nanoseconds{8});
    pace.hope(cost, best, 10 * base::second);
    CHECK(cost.per_byte == best);
    pace.sent(2 * kib, 0);
    pace.delivered(2 * kib);
    pace.lone({2 * kib, 1, 2 * kib * 8}, cost.per_byte, 16'384, 10 * base::second);
    CHECK(pace.per_byte() == best);
}

TEST_CASE("a guess that is tried, and still too slow, is not confirmed", "[sched][pace]") {
    // It is hoped for by one peer and tried by another one, which has no other rail and goes by the guess.
    sched::Pace pace;
    sched::Cost cost{.slope = sched::to_ticks(base::Nanoseconds{400}),
                     .per_byte = sched::to_ticks(base::Nanoseconds{400})};
    const auto guess = cost.per_byte;
    pace.hope(cost, sched::to_ticks(base::Nanoseconds{8}), 10 * base::second);
    pace.sent(2 * kib, 0);
    pace.delivered(2 * kib);
    pace.lone({2 * kib, 1, 2 * kib * 8}, guess, 16'384, 10 * base::second);
    CHECK(pace.per_byte() == sched::to_ticks(base::Nanoseconds{8}));
}

TEST_CASE("trains over a rail that passes bursts show what it sustains", "[sched][pace]") {
    const auto rate = GENERATE(8.36, 83.6);
    const auto bytes = GENERATE(8 * kib, 32 * kib, 150 * kib);
    const auto idle = GENERATE(0.0, 0.5);  // share of the time that the peer has its turn, on another rail
    CAPTURE(rate, bytes, idle);
    Trains trains{.pace = {}, .thought = sched::to_ticks(base::Nanoseconds{1})};
    TokenBucket bucket{.per_byte = rate, .burst = 256 * 1024};
    for (std::uint64_t sent = 0; sent < 4 * mib; sent += bytes) {
        const auto service = bucket.send(bytes, trains.now);
        const auto rest = static_cast<base::Nanoseconds>(idle / (1 - idle) * static_cast<double>(service));
        trains.one(bytes, static_cast<double>(service) / static_cast<double>(bytes));
        trains.now += rest;
    }
    CHECK(sched::to_ns(trains.pace.per_byte()) == Approx(rate).epsilon(0.15));
}

TEST_CASE("a rail that others were preferred to is tried again, with little", "[sched][pace]") {
    const auto slow = sched::to_ticks(base::Nanoseconds{80});
    const auto prior = sched::to_ticks(base::Nanoseconds{2});
    Trains trains{.pace = {}, .thought = prior};
    auto& pace = trains.pace;
    for (int i = 0; i < 4; ++i) trains.one(mib, 80);
    CHECK(pace.per_byte(100 * base::millisecond, prior) == slow);
    CHECK(pace.allowance(100 * base::millisecond) >= 256 * kib);
    CHECK(pace.per_byte(400 * base::millisecond, prior) == slow / 8);
    CHECK(pace.per_byte(100 * base::second, prior) == prior);
    CHECK(pace.per_byte(100 * base::second, 2 * slow) == slow);  // a prior that is no better changes nothing

    trains.busy = base::second;
    SECTION("it is as slow as ever: one trial shows it") {
        trains.one(16 * kib, 80);
        CHECK(pace.per_byte(base::second, prior) == slow);
    }
    SECTION("that one is very late shows little: somebody may have been away") {
        trains.one(2 * kib, 2000);
        CHECK(pace.per_byte(base::second, prior) == 2 * slow);
    }
    SECTION("it has become faster") {
        trains.one(16 * kib, 8);
        CHECK(pace.per_byte(base::second, prior) == slow / 10);
        CHECK(pace.allowance(base::second) >= 256 * kib);
        SECTION("but that was a burst: the first late train shows it") {
            trains.one(16 * kib, 8);
            trains.one(16 * kib, 80);
            CHECK(pace.per_byte(base::second, prior) == slow);
        }
    }
}

namespace {

/// Acknowledgements that were missing for 60 ms each while a rail was being lost, and came over another one.
base::Nanoseconds stalls(sched::Pace& pace, base::Nanoseconds now) {
    pace.sent(5 * 64 * kib, now);
    for (int i = 0; i < 4; ++i) {
        now += 60 * base::millisecond;
        pace.delivered(64 * kib);
        pace.settle(now, now);
    }
    pace.lost(64 * kib);
    return now;
}

}  // namespace

TEST_CASE("a rail that is restored has the rate of before its loss, not what the loss looked like", "[sched][pace]") {
    const auto flow_time = GENERATE(700 * base::millisecond, 3 * base::second);
    Flow flow({}, 256 * kib, 16 * kib);
    flow.time(flow_time);
    flow.idle(0);
    const auto before = flow.per_byte_ns();
    auto now = flow.now();
    for (int loss = 0; loss < 3; ++loss) {  // soon after each other, too
        now = stalls(flow.pace, now);
        CHECK(flow.per_byte_ns() > 50 * before);
        now += 100 * base::millisecond;
        flow.pace.restored(now, now);
        check_near(flow.per_byte_ns(), before, 0.05);
    }
}

TEST_CASE("what goes over a restored rail first does not show its rate, but a backlog does", "[sched][pace]") {
    Flow flow({}, 256 * kib, 16 * kib);
    flow.time(3 * base::second);
    flow.idle(0);
    const auto before = flow.per_byte_ns();
    SECTION("late trains count a second later") {
        Trains trains{.pace = flow.pace, .thought = flow.pace.per_byte(), .now = flow.now(), .busy = flow.now()};
        trains.busy += 10 * base::second;  // the other rail had traffic meanwhile
        trains.pace.restored(trains.now, trains.busy);
        for (int i = 0; i < 10; ++i) trains.one(16 * kib, 2000);
        CHECK(sched::to_ns(trains.pace.per_byte(trains.busy, 1)) == Approx(before));
        trains.now += base::second;
        for (int i = 0; i < 4; ++i) trains.one(16 * kib, 2000);
        CHECK(sched::to_ns(trains.pace.per_byte()) == Approx(2000).epsilon(0.05));
    }
    SECTION("it has become slower, and is kept busy") {
        flow.wire.change_rate(80);
        flow.pace.restored(flow.now(), flow.now());
        flow.time(100 * base::millisecond);
        check_near(flow.per_byte_ns(), 80, 0.05);
    }
}

TEST_CASE("two moments of one train that are told show its lateness once", "[sched][pace]") {
    // 16 messages of 16 KiB every 16 or 20 ms over a rail of 8 ns a byte that is thought to have 2; the last two are told of.
    const auto period = GENERATE(16, 20) * base::millisecond;
    sched::Pace pace;
    const auto thought = sched::to_ticks(2.0);
    const auto known = [&](base::Nanoseconds busy) {
        const auto per_byte = pace.per_byte(busy, thought);
        return per_byte > 0 ? per_byte : thought;
    };
    for (base::Nanoseconds begin = 0; begin < base::second; begin += period) {
        pace.sent(256 * kib, begin, true, 16);
        for (const std::uint64_t bytes : {240 * kib, 256 * kib}) {
            const auto service = static_cast<base::Nanoseconds>(bytes * 8);
            const sched::Mark end{begin + service, pace.handed() - 256 * kib + bytes};
            pace.lone({.bytes = bytes, .messages = 16, .service = service, .by_host = true, .end = end}, known(begin),
                      begin + service, begin);
        }
        pace.delivered(256 * kib, 16);
        pace.settle(begin + 3 * base::millisecond, begin);
        CHECK(pace.per_byte() < sched::to_ticks(10.0));
    }
    CHECK(sched::to_ns(pace.per_byte()) == Approx(8).epsilon(0.1));
}

TEST_CASE("what passed at once bounds G, until something shows it", "[sched][pace]") {
    Trains trains{.pace = {}, .thought = sched::to_ticks(base::Nanoseconds{8})};
    const auto bounded = [&](double& per_byte) {
        sched::Cost cost{.slope = trains.thought, .per_byte = trains.thought};
        const bool is = trains.pace.correct(cost, trains.now, trains.busy);
        per_byte = sched::to_ns(cost.per_byte);
        return is;
    };
    double per_byte = 0;
    CHECK_FALSE(bounded(per_byte));
    CHECK(per_byte == 8);
    trains.one(8 * kib, 0.5);
    CHECK(bounded(per_byte));  // the looks of both sides may hide 20 us
    CHECK(per_byte == Approx(0.5 + 20'000.0 / (8 * kib)).epsilon(0.01));
    for (int i = 0; i < 1000; ++i) trains.one(64 * kib, 20);
    CHECK_FALSE(bounded(per_byte));
    CHECK(per_byte == Approx(20).epsilon(0.05));
}

TEST_CASE("what passed at once bounds what a byte takes besides G, too, if G is no more", "[sched][pace]") {
    Trains trains{.pace = {}, .thought = sched::to_ticks(base::Nanoseconds{1})};
    trains.one(8 * kib, 0.5);
    sched::Cost cost{.slope = sched::to_ticks(base::Nanoseconds{200}), .per_byte = trains.thought};
    CHECK_FALSE(trains.pace.correct(cost, trains.now, trains.busy));
    CHECK(cost.per_byte == trains.thought);
    CHECK(sched::to_ns(cost.slope) == Approx(1 + 0.5 + 20'000.0 / (8 * kib)).epsilon(0.01));
}

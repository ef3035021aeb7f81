#include <catch2/catch.hpp>

#include "sched/pace.hpp"

using namespace railmux;

TEST_CASE("a gap is not longer than what messages that came through took", "[sched][pace]") {
    sched::Pace pace;
    base::Nanoseconds now = base::second;
    const auto messages = [&](int count, base::Nanoseconds each, base::Nanoseconds unseen = 0) {
        for (int i = 0; i < count; ++i) {
            pace.sent(8, now);
            now += each;
            pace.delivered(8);
            pace.settle(now, now, {}, {.unseen = unseen});
        }
    };
    const auto corrected = [&](base::Nanoseconds at) {
        sched::Cost cost{.gap = sched::to_ticks(base::second), .per_byte = 1};
        static_cast<void>(pace.correct(cost, at, at));
        return cost.gap;
    };
    const auto unlimited = sched::to_ticks(base::second);
    const auto roughly = [](base::Nanoseconds gap) { return Approx(double(sched::to_ticks(gap))).epsilon(0.001); };
    CHECK(corrected(now) == unlimited);
    messages(4, base::millisecond);
    CHECK(corrected(now) == unlimited);
    messages(20, base::millisecond);
    CHECK(double(corrected(now)) == roughly(base::millisecond));
    messages(1000, 10 * base::microsecond);
    CHECK(double(corrected(now)) == roughly(10 * base::microsecond));
    messages(2500, base::millisecond);
    CHECK(double(corrected(now)) == roughly(base::millisecond));  // faster ones are forgotten
    CHECK(corrected(now + 3 * base::second) == unlimited);

    // Those that nobody had looked for say nothing of the time in which they became known.
    messages(10, base::millisecond);
    messages(1, 5 * base::millisecond, 5 * base::millisecond);
    messages(5000, base::microsecond / 10, 5 * base::millisecond);
    CHECK(double(corrected(now)) == roughly(base::millisecond));
}

TEST_CASE("G is not higher than what came through shows, and g not for the second time", "[sched][pace]") {
    sched::Pace pace;
    base::Nanoseconds now = base::second;
    for (int i = 0; i < 5000; ++i) {  // never a backlog
        pace.sent(100, now);
        now += base::microsecond;
        pace.delivered(100);
        pace.settle(now, now);
    }
    sched::Cost cost{.slope = 5, .gap = sched::to_ticks(3 * base::microsecond), .per_byte = sched::to_ticks(500.0)};
    static_cast<void>(pace.correct(cost, now, now));
    CHECK(cost.per_byte == sched::to_ticks(10.0));
    CHECK(cost.slope == sched::to_ticks(10.0));
    CHECK(cost.gap == 0);

    cost = {.slope = 2048, .gap = sched::to_ticks(3 * base::microsecond), .per_byte = sched::to_ticks(2.0)};
    static_cast<void>(pace.correct(cost, now, now));
    CHECK(cost.per_byte == sched::to_ticks(2.0));  // lower is not contradicted
    CHECK(cost.slope == 2048);
    CHECK(cost.gap == sched::to_ticks(800.0));
}

TEST_CASE("a rate is refuted by what comes through faster for long, not by a burst", "[sched][pace]") {
    sched::Pace pace;
    base::Nanoseconds now = base::second;
    const auto slow = sched::to_ticks(80.0);
    pace.measured(slow, now);
    const auto come_through = [&](int messages, base::Nanoseconds each) {
        for (int i = 0; i < messages; ++i) {
            pace.sent(1024, now);
            now += each;
            pace.delivered(1024);
            pace.settle(now, now);
        }
    };
    come_through(512, base::microsecond);
    come_through(2048, 100 * base::microsecond);
    CHECK(pace.per_byte() == slow);
    come_through(3 * 2048, base::microsecond);
    CHECK(double(pace.per_byte()) == Approx(1024 * 1000.0 / 1024).epsilon(0.01));
}

#include "sched/lulls.hpp"

#include <catch2/catch.hpp>

using namespace railmux;
using sched::Lulls;

TEST_CASE("lulls: from the last that came, here or there, to the next that goes, or comes for an answer",
          "[sched][spread]") {
    constexpr auto ms = base::millisecond;
    Lulls lulls;
    lulls.sent(false, 5 * ms);
    CHECK(lulls.all() == 0);  // nobody knows what was before
    lulls.sent(true, 35 * ms);
    CHECK(lulls.all() == 0);  // one was under way
    SECTION("of who is answered") {
        lulls.came_through(36 * ms);
        lulls.came(false, 37 * ms);
        lulls.sent(false, 137 * ms);
        CHECK(lulls.all() == 100 * ms);
    }
    SECTION("of who answers") {
        lulls.came_through(36 * ms);
        lulls.came(false, 136 * ms);
        CHECK(lulls.all() == 100 * ms);
        lulls.came(false, 236 * ms);  // of the same burst
        CHECK(lulls.all() == 100 * ms);
    }
    SECTION("of who finds the answer before he is told that what he sent has come") {
        lulls.came(true, 36 * ms);
        lulls.sent(false, 136 * ms);
        CHECK(lulls.all() == 100 * ms);
    }
}

TEST_CASE("lulls: what a slow rail takes is none", "[sched][spread]") {
    Lulls lulls;
    base::Nanoseconds now = base::second;
    const auto answered = [&](base::Nanoseconds after) {
        lulls.sent(false, now);
        lulls.came_through(now);
        lulls.came(false, now += after);
    };
    for (int i = 0; i < 100; ++i) answered(13 * base::millisecond);  // 16 KiB at 10 Mbit/s
    CHECK(lulls.all() == 0);
    lulls.expect(130 * base::millisecond);  // at 1 Mbit/s
    answered(200 * base::millisecond);
    CHECK(lulls.all() == 0);
    answered(600 * base::millisecond);
    CHECK(lulls.all() == 600 * base::millisecond);
}

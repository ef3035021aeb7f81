#include "sched/echo.hpp"

#include <catch2/catch.hpp>

using namespace railmux;

TEST_CASE("the latency of a link is the least of enough small messages, and forgets", "[sched][echo]") {
    sched::Echo echo;
    for (int i = 0; i < 7; ++i) echo.heard(20'000 + 1000 * i, i, 0);
    CHECK(echo.latency(7) == 0);
    echo.heard(30'000, 8, 0);
    CHECK(echo.latency(8) == sched::to_ticks(base::Nanoseconds{10'000}));
    for (int i = 0; i < 300; ++i) echo.heard(40'000, base::second / 100 * i, 0);
    CHECK(echo.latency(3 * base::second) == sched::to_ticks(base::Nanoseconds{20'000}));
    CHECK(echo.latency(6 * base::second) == 0);  // without news, too
}

TEST_CASE("the latency of a link is no more than any message says", "[sched][echo]") {
    sched::Echo echo;
    CHECK(echo.bound(0) == 0);
    echo.heard(30'000, 1, 0);
    CHECK(echo.bound(1) == sched::to_ticks(base::Nanoseconds{15'000}));
    echo.heard(20'000, 2, 0);
    CHECK(echo.bound(2) == sched::to_ticks(base::Nanoseconds{10'000}));
    CHECK(echo.latency(2) == 0);
    CHECK(echo.bound(3 * base::second) == 0);
}

TEST_CASE("echo: what a link was late by that is used no more wears off with traffic, but not below what was thought") {
    constexpr auto thought = sched::to_ticks(base::Nanoseconds{26'000});
    constexpr auto slow = sched::to_ticks(base::Nanoseconds{754'000});
    const auto busy = 7 * base::second;
    sched::Echo echo;
    for (int i = 0; i < 8; ++i) echo.heard(1'508'000, base::millisecond, busy);
    const auto after = [&](base::Nanoseconds traffic) {
        return echo.latency(base::second / 2, busy + traffic * base::millisecond, thought);
    };
    CHECK(after(0) == slow);
    CHECK(after(99) == slow);  // and for as long as there is none
    CHECK(after(100) == thought + (slow - thought) / 2);
    CHECK(after(300) == thought + (slow - thought) / 8);
    CHECK(after(100'000) == thought);
    echo.heard(1'508'000, 2 * base::millisecond, busy + base::second);
    CHECK(after(1000) == slow);  // one confirms it
    for (int i = 0; i < 8; ++i) echo.heard(10'000, 3 * base::millisecond, busy);
    CHECK(after(0) == sched::to_ticks(base::Nanoseconds{5'000}));  // less than thought does not wear off
    CHECK(after(900) == sched::to_ticks(base::Nanoseconds{5'000}));
}

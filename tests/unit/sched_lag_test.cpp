#include <catch2/catch.hpp>

#include "sched/lag.hpp"

using namespace railmux;
using sched::Lag;

namespace {
constexpr sched::Ticks micro = sched::to_ticks(base::microsecond);
}

TEST_CASE("lag: what four messages in a row are late by at least") {
    Lag lag;
    for (const sched::Ticks late : {20, 50, 30}) {
        lag.arrived(5 * micro + late * micro, 5 * micro, 0);
        REQUIRE(lag.least(0) == 0);
    }
    lag.arrived(1000 * micro, 5 * micro, 0);
    REQUIRE(lag.least(0) == 20 * micro);
    lag.arrived(45 * micro, 5 * micro, 0);
    REQUIRE(lag.least(0) == 30 * micro);
}

TEST_CASE("lag: one message in time ends it") {
    Lag lag;
    for (int i = 0; i < 8; ++i) lag.arrived(50 * micro, 5 * micro, 0);
    REQUIRE(lag.least(0) == 45 * micro);
    lag.arrived(6 * micro, 5 * micro, 0);
    REQUIRE(lag.least(0) == 0);
}

TEST_CASE("lag: half as long again as predicted is in time, and so is sooner") {
    Lag lag;
    for (int i = 0; i < 8; ++i) lag.arrived(i % 2 == 0 ? 15 * micro : 2 * micro, 10 * micro, 0);
    REQUIRE(lag.least(0) == 0);
}

TEST_CASE("lag: of a rail that is used no more it wears off") {
    Lag lag;
    for (int i = 0; i < 4; ++i) lag.arrived(105 * micro, 5 * micro, base::second);
    REQUIRE(lag.least(base::second + 99 * base::millisecond) == 100 * micro);
    REQUIRE(lag.least(base::second + 100 * base::millisecond) == 50 * micro);
    REQUIRE(lag.least(base::second + 300 * base::millisecond) == 100 * micro / 8);
    REQUIRE(lag.least(3600 * base::second) == 0);
    REQUIRE(lag.least(0) == 100 * micro);  // clocks that go back do no harm
}

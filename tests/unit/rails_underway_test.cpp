#include <catch2/catch.hpp>

#include "rails/underway.hpp"

using namespace railmux;
using rails::Underway;

TEST_CASE("what is acknowledged has landed, and what has landed is acknowledged later", "[rails][underway]") {
    Underway underway;
    underway.handed(100, 1);
    CHECK(underway.over(30) == 30);
    CHECK(underway.landed_but(20) == 50);
    CHECK(underway.on_the_way() == 20);
    CHECK(underway.unacknowledged() == 70);
    CHECK(underway.over(60) == 10);  // 50 of them had landed
    CHECK(underway.on_the_way() == 10);
    CHECK(underway.over(10) == 10);
    CHECK(underway.on_the_way() == 0);
    CHECK(underway.unacknowledged() == 0);
}

TEST_CASE("a network that confirms less than was acknowledged says nothing", "[rails][underway]") {
    Underway underway;
    underway.handed(100, 1);
    CHECK(underway.landed_but(1000) == 0);
    CHECK(underway.over(100) == 100);
    CHECK(underway.landed_but(50) == 0);
    underway.handed(10, 1);
    CHECK(underway.landed_but(60) == 0);
    CHECK(underway.on_the_way() == 10);
    CHECK(underway.landed_but(0) == 10);
}

TEST_CASE("the network is asked now and then, and not for little", "[rails][underway]") {
    constexpr auto us = base::microsecond;
    Underway underway;
    underway.handed(100, 1);
    CHECK_FALSE(underway.worth_asking(1000 * us));
    underway.handed(10'000, 1);
    CHECK(underway.worth_asking(1000 * us));
    CHECK_FALSE(underway.worth_asking(1050 * us));
    CHECK(underway.worth_asking(1200 * us));
    CHECK(underway.landed_but(50) > 0);
    CHECK_FALSE(underway.worth_asking(1400 * us));
}

TEST_CASE("of what was handed over since the rail was idle nothing is from before", "[rails][underway]") {
    Underway underway;
    CHECK(underway.handed_since(1) == 0);
    underway.handed(100, 1);
    underway.handed(10, 1);
    CHECK(underway.handed_since(1) == 110);
    CHECK(underway.handed_since(2) == 0);
    underway.handed(5, 2);
    CHECK(underway.handed_since(2) == 5);
}

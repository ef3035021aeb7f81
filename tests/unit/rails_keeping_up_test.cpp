#include <catch2/catch.hpp>

#include "rails/keeping_up.hpp"

using namespace railmux;
using rails::KeepingUp;

namespace {
constexpr auto us = base::microsecond;
}

TEST_CASE("who looks in vain keeps up", "[rails][keeping_up]") {
    KeepingUp upkeep;
    for (base::Nanoseconds now = 0; now < 1000 * us; now += us) upkeep.looked(false, now);
    CHECK_FALSE(upkeep.behind());
}

TEST_CASE("who finds something at each look does not", "[rails][keeping_up]") {
    KeepingUp upkeep;
    for (base::Nanoseconds now = 0; now < 1000 * us; now += us) upkeep.looked(true, now);
    CHECK(upkeep.behind());
    for (base::Nanoseconds now = 1000 * us; now < 2000 * us; now += us) upkeep.looked(false, now);
    CHECK_FALSE(upkeep.behind());
}

TEST_CASE("half of the time must be free", "[rails][keeping_up]") {
    const auto behind = [&](base::Nanoseconds found, base::Nanoseconds period) {
        KeepingUp upkeep;
        for (base::Nanoseconds now = 10'000 * us; now < 20'000 * us; now += us)
            upkeep.looked(now % period < found, now);
        return upkeep.behind();
    };
    CHECK_FALSE(behind(2 * us, 10 * us));
    CHECK(behind(8 * us, 10 * us));
}

TEST_CASE("who computes between looks that find something does not keep up", "[rails][keeping_up]") {
    KeepingUp upkeep;
    for (base::Nanoseconds now = 0; now < 10'000 * us; now += 1000 * us) upkeep.looked(true, now);
    CHECK(upkeep.behind());
}

TEST_CASE("sleep is free time", "[rails][keeping_up]") {
    KeepingUp upkeep;
    for (base::Nanoseconds now = 0; now < 10'000 * us; now += 1000 * us) {
        upkeep.slept(now);
        upkeep.looked(true, now);
    }
    CHECK_FALSE(upkeep.behind());
}

TEST_CASE("who sends between looks in vain has no time", "[rails][keeping_up]") {
    KeepingUp upkeep;
    const auto sends = [&](base::Nanoseconds from, base::Nanoseconds to, base::Nanoseconds part) {
        for (base::Nanoseconds now = from; now < to; now += us) {
            upkeep.looked(false, now);
            if (now % (10 * us) < part) upkeep.sending();
        }
    };
    sends(0, 1000 * us, 10 * us);
    CHECK(upkeep.busy());
    CHECK(upkeep.behind());
    sends(1000 * us, 2000 * us, 8 * us);  // a fifth is free
    CHECK_FALSE(upkeep.busy());
    CHECK(upkeep.behind());
    sends(2000 * us, 3000 * us, 2 * us);
    CHECK_FALSE(upkeep.busy());
    CHECK_FALSE(upkeep.behind());
}

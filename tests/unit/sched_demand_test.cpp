// How much of a rail's time is taken.
#include <catch2/catch.hpp>

#include "sched/demand.hpp"

using namespace railmux;
using sched::Demand;
using sched::Ticks;

namespace {

/// After half a second of messages that take `takes` each `every`: between two of them, in parts of all.
double demanded(base::Nanoseconds takes, base::Nanoseconds every) {
    Demand demand;
    base::Nanoseconds now = 3 * base::second;
    for (const auto end = now + base::second / 2; now < end; now += every) {
        demand.add(sched::to_ticks(takes), sched::to_ticks(now));
    }
    return static_cast<double>(demand.lately(sched::to_ticks(now)) + sched::to_ticks(takes) / 2) /
           static_cast<double>(Demand::all);
}

}  // namespace

TEST_CASE("demand is the part of its time that a rail is used", "[sched]") {
    for (const base::Nanoseconds every : {1000, 8000, 131'000}) {
        for (const double part : {0.1, 0.5, 0.75, 1.0, 2.0}) {
            CAPTURE(every, part);
            CHECK(demanded(std::llround(part * static_cast<double>(every)), every) == Approx(part).epsilon(0.08));
        }
    }
}

TEST_CASE("demand is forgotten", "[sched]") {
    Demand demand;
    CHECK(demand.lately(sched::to_ticks(base::second)) == 0);
    demand.add(Demand::all, sched::to_ticks(base::second));
    CHECK(demand.lately(sched::to_ticks(base::second)) == Demand::all);
    const auto halved = demand.lately(sched::to_ticks(base::second + 3 * base::millisecond));
    CHECK(halved > Demand::all * 4 / 10);
    CHECK(halved < Demand::all * 6 / 10);
    CHECK(demand.lately(sched::to_ticks(2 * base::second)) < 16);
    CHECK(demand.lately(sched::to_ticks(86400 * base::second)) < 16);
}

#include <catch2/catch.hpp>

#include "sched/pace.hpp"

using namespace railmux;
using sched::Pace;
using sched::to_ticks;

namespace {

constexpr auto us = base::microsecond;
constexpr std::uint64_t bytes = 4096;

/// Two processes that send each other one message at a time: one is always under way, and comes through every 350 us.
struct Pipelined {
    Pace pace;
    base::Nanoseconds now = 0;

    Pipelined() { pace.sent(bytes, now); }
    void step() {
        pace.sent(bytes, now);
        now += 350 * us;
        pace.delivered(bytes);
        if (const auto passage = pace.take_passage(); passage) {
            pace.lone(passage->bytes, now - passage->begin, to_ticks(0.8), now, now);
        }
        pace.settle(now, now);
    }
};

}  // namespace

TEST_CASE("a rail that always has a little, and is slow, is found out within 20 ms", "[sched][pace]") {
    Pipelined flow;
    while (flow.now < 20 * base::millisecond) flow.step();
    CHECK(sched::to_ns(flow.pace.per_byte()) == Approx(350'000.0 / bytes).epsilon(0.1));
}

TEST_CASE("a passage ends when all that was on the rail has come through", "[sched][pace]") {
    Pace pace;
    pace.sent(1000, 0);
    pace.sent(2000, 10);
    CHECK_FALSE(pace.take_passage());
    pace.delivered(1000);
    const auto passage = pace.take_passage();
    REQUIRE(passage);
    CHECK(passage->bytes == 1000);
    CHECK(passage->begin == 0);
    CHECK(passage->undisturbed);
    pace.sent(500, 20);  // the next one begins
    pace.delivered(2000);
    CHECK_FALSE(pace.take_passage());
    pace.delivered(500);
    REQUIRE(pace.take_passage());
}

TEST_CASE("a passage is over when something of it is lost, or others use the rail", "[sched][pace]") {
    Pace pace;
    pace.sent(1000, 0);
    pace.lost(1000);
    pace.sent(1000, 10);
    pace.delivered(1000);
    REQUIRE(pace.take_passage());
    pace.sent(1000, 20);
    pace.sent(1000, 30, false);
    pace.delivered(2000);
    CHECK_FALSE(pace.take_passage());
}

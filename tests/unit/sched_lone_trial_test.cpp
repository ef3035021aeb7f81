#include "sched/lone_trial.hpp"

#include <catch2/catch.hpp>

using namespace railmux;

TEST_CASE("a link is tried twice as seldom each time, but twice in a second of traffic for ever", "[sched]") {
    sched::LoneTrial trial;
    int tried = 0;
    const auto pass = [&](base::Nanoseconds begin, base::Nanoseconds end) {
        for (auto busy = begin; busy < end; busy += base::millisecond / 2) {
            if (!trial.due(busy)) continue;
            trial.went(busy);
            ++tried;
        }
    };
    pass(0, 2 * base::millisecond);
    CHECK(tried == 0);
    pass(2 * base::millisecond, base::second);
    CHECK(tried == 9);  // after 2 ms, and 2, 4 ... 256 more
    tried = 0;
    pass(base::second, 101 * base::second);
    CHECK(tried >= 194);
    CHECK(tried <= 196);
}

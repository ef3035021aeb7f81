#include "sched/lulls.hpp"

#include <catch2/catch.hpp>

using namespace railmux;
using sched::Lulls;

TEST_CASE("lulls: from the last that came, here or there, to the next", "[sched][spread]") {
    Lulls lulls;
    lulls.stirred(false, 5 * base::millisecond);
    CHECK(lulls.all() == 0);  // nobody knows what was before
    lulls.stirred(true, 15 * base::millisecond);
    CHECK(lulls.all() == 0);  // one was under way
    lulls.came_through(16 * base::millisecond);
    lulls.stirred(false, 26 * base::millisecond);
    CHECK(lulls.all() == 10 * base::millisecond);
    lulls.stirred(false, 46 * base::millisecond);  // the first came, and then this one
    CHECK(lulls.all() == 30 * base::millisecond);
}

TEST_CASE("lulls: what processors take now and then is none", "[sched][spread]") {
    Lulls lulls;
    for (int i = 1; i < 100; ++i) lulls.stirred(false, i * 500 * base::microsecond);
    CHECK(lulls.all() == 0);
}

#include "sched/fill.hpp"

#include <catch2/catch.hpp>

using namespace railmux;

TEST_CASE("who finds a rail dry that had enough gives it twice as much", "[sched][fill]") {
    sched::Fill fill;
    base::Nanoseconds now = base::second;
    const auto least = fill.span(now);
    const auto find = [&](std::uint64_t left) {
        fill.enough(64 * 1024);
        fill.looked(left, now);
    };
    find(0);
    CHECK(fill.span(now) == 2 * least);
    find(1024);  // next to nothing
    CHECK(fill.span(now) == 4 * least);
    find(32 * 1024);
    CHECK(fill.span(now) == 4 * least);

    SECTION("as far as some milliseconds") {
        for (int i = 0; i < 100; ++i) find(0);
        CHECK(fill.span(now) == 8 * least);
    }
    SECTION("and less again when it was not for some time") {
        now += 100 * base::millisecond;
        CHECK(fill.span(now) == 2 * least);
        now += base::second;
        CHECK(fill.span(now) == least);
        now += 3600 * base::second;
        CHECK(fill.span(now) == least);
        find(0);
        CHECK(fill.span(now) == 2 * least);
    }
}

TEST_CASE("a rail that had not been given enough says nothing by being dry", "[sched][fill]") {
    sched::Fill fill;
    const auto least = fill.span(0);
    fill.looked(0, 10);
    CHECK(fill.span(10) == least);
    fill.enough(64 * 1024);
    fill.looked(0, 10);
    fill.looked(0, 20);  // it was looked at since
    CHECK(fill.span(20) == 2 * least);
}

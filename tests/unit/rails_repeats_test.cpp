#include <catch2/catch.hpp>

#include <vector>

#include "rails/repeats.hpp"

using namespace railmux;
using rails::Repeats;

namespace {

struct Asked {
    Repeats repeats;
    std::vector<std::uint32_t> repeated;
    base::Nanoseconds due(base::Nanoseconds busy, base::Nanoseconds now) {
        return repeats.due(busy, now, [&](std::uint32_t slot) { repeated.push_back(slot); });
    }
};

}  // namespace

TEST_CASE("repeats: after a second with traffic, after four more, after sixteen, and no more") {
    Asked f;
    base::Nanoseconds busy = 7;
    std::uint32_t before = 0;
    for (const int seconds : {1, 4, 16}) {
        REQUIRE(f.repeats.add(5, before++, busy));
        busy += seconds * base::second;
        static_cast<void>(f.due(busy - 1, busy));
        REQUIRE(f.repeated.size() == before - 1);
        static_cast<void>(f.due(busy, busy));
        REQUIRE(f.repeated.size() == before);
        REQUIRE(f.repeated.back() == 5);
    }
    REQUIRE_FALSE(f.repeats.add(5, before, busy));
    REQUIRE(f.due(100 * busy, busy) == base::never);
}

TEST_CASE("repeats: nobody is woken often for the little traffic that is missing") {
    Asked f;
    REQUIRE(f.repeats.add(1, 0, 0));
    const base::Nanoseconds now = 50 * base::second;
    REQUIRE(f.due(base::second - 10, now) == now + base::second);
    REQUIRE(f.due(base::second - 10, now + base::second) == now + 2 * base::second);
    REQUIRE(f.repeated.empty());
}

TEST_CASE("repeats: links that are over are not measured") {
    Asked f;
    for (const std::uint32_t slot : {1, 2, 3}) REQUIRE(f.repeats.add(slot, 0, 0));
    f.repeats.drop([](std::uint32_t slot) { return slot == 2; });
    static_cast<void>(f.due(base::second, 0));
    REQUIRE(f.repeated == std::vector<std::uint32_t>{1, 3});
    REQUIRE(f.repeats.add(1, 0, 0));
    f.repeats.drop([](std::uint32_t) { return true; });
    REQUIRE(f.due(base::second, 0) == base::never);
}

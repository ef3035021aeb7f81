#include "rails/arrival_times.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstddef>
#include <span>

using railmux::rails::ArrivalTimes;

TEST_CASE("arrival times are read as they were written, and not from too few bytes", "[rails]") {
    const ArrivalTimes written{.timed = {.at = 123'456'789'012'345, .by_host = false},
                               .before = {.at = 123'456'700'000'000, .by_host = true},
                               .before_seq = 0xfedcba98};
    std::array<std::byte, ArrivalTimes::size> bytes{};
    written.write(bytes.data());
    const auto read = ArrivalTimes::read(bytes);
    REQUIRE(read);
    CHECK(read->timed.at == written.timed.at);
    CHECK_FALSE(read->timed.by_host);
    CHECK(read->before.at == written.before.at);
    CHECK(read->before.by_host);
    CHECK(read->before_seq == written.before_seq);
    CHECK_FALSE(ArrivalTimes::read(std::span(bytes).first(ArrivalTimes::size - 1)));
}

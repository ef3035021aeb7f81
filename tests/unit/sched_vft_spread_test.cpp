// How bursts of heavy frames are spread, and where the light ones among them go.
#include <catch2/catch.hpp>

#include <array>
#include <cstdlib>

#include "sched/vft.hpp"
#include "sched_rails.hpp"

using namespace railmux;
using sched::Spread;
using sched::Vft;
using sched::test::rail;
using sched::test::send;

TEST_CASE("bursts are spread as is found to be best", "[sched][vft][spread]") {
    Vft vft(2);
    std::array rails{rail(0, 8), rail(1, 80)};
    const auto shares = [&](sched::Spread spread, std::uint64_t bytes) {
        std::array<int, 2> messages{};
        for (auto& each : rails) each.spread = spread, each.turn = each.cost.per_byte;
        for (int i = 0; i < 1100; ++i) {
            const auto place = vft.choose(rails, bytes, 0);
            vft.charge(rails[place], bytes, 0);
            ++messages[place];
        }
        return messages;
    };
    for (int i = 0; i < 100; ++i) vft.charge(rails[0], 4096, 0);  // what was before counts for little
    const auto in_turn = shares(sched::Spread::in_turn, 4096);
    CHECK(std::abs(in_turn[0] - in_turn[1]) <= 5);
    const auto by_rate = shares(sched::Spread::by_rate, 4096);
    CHECK(std::abs(by_rate[0] - 10 * by_rate[1]) <= 50);
    CHECK(shares(sched::Spread::single, 4096) == std::array{1100, 0});
    CHECK(shares(sched::Spread::in_turn, 8) == std::array{1100, 0});         // a light one
    CHECK(shares(sched::Spread::in_turn, 64 << 10) == std::array{1100, 0});  // and one that others know more of

    SECTION("over the one that was used last, of two that are about as fast") {
        std::array even{rail(0, 8), rail(1, 8)};
        for (auto& each : even) each.spread = sched::Spread::single;
        for (const std::size_t last : {1U, 0U}) {
            for (std::size_t i = 0; i < even.size(); ++i) even[i].last_heavy = i == last;
            CHECK(vft.choose(even, 4096, base::second) == last);
        }
        even[0].last_heavy = false;
        CHECK(vft.choose(even, 4096, base::second) == 0);
        even[1].last_heavy = true;
        even[1].cost.slope *= 2;
        CHECK(vft.choose(even, 4096, base::second) == 0);
    }
    SECTION("... or over the one that the other side's came over, who leads") {
        std::array even{rail(0, 8), rail(1, 8)};
        for (auto& each : even) each.spread = sched::Spread::single;
        for (const std::size_t answered : {1U, 0U}) {
            for (std::size_t i = 0; i < even.size(); ++i)
                even[i].recent = i == answered, even[i].last_heavy = i != answered;
            CHECK(vft.choose(even, 4096, base::second) == answered);
        }
        even[0].cost.slope *= 2;
        CHECK(vft.choose(even, 4096, base::second) == 1);
        std::array three{rail(0, 80), rail(1, 8), rail(2, 8)};  // the other side's is slow from here
        for (auto& each : three) each.spread = sched::Spread::single;
        three[0].recent = three[2].last_heavy = true;
        CHECK(vft.choose(three, 4096, base::second) == 2);
    }
    SECTION("light ones among them go along, where that is over one") {
        const auto behind = GENERATE(false, true);
        std::array slower{rail(0, 8), rail(1, 8, 50'000)};
        for (auto& each : slower) each.with_heavy = true, each.behind = each.favoured_light = behind;
        slower[1].favoured_light = false;
        slower[1].last_heavy = true;
        for (const auto spread : {Spread::predicted, Spread::by_rate, Spread::in_turn, Spread::single}) {
            for (auto& each : slower) each.spread = spread;
            CHECK(vft.choose(slower, 8, base::second) == (spread == Spread::single ? 1 : 0));
            CHECK(vft.choose(slower, sched::light_bytes, base::second) == (spread == Spread::single ? 1 : 0));
        }
        CHECK(vft.choose(slower, sched::light_bytes + 1, base::second) == 0);
        for (auto& each : slower) each.with_heavy = false;  // but not when there have been no others for long
        CHECK(vft.choose(slower, 8, base::second) == 0);
        for (auto& each : slower) each.with_heavy = true;
        CHECK(vft.choose(slower, 8, base::second) == 1);
        auto busy = slower[1];
        send(vft, busy, 40'000, base::second);  // 320 us
        slower[1].backlog = busy.backlog;
        if (!behind) CHECK(vft.choose(slower, 8, base::second) == 0);
        CHECK(vft.lead(slower, 1, 8, base::second) == (behind ? vft.lead(slower, 0, 8, base::second) : 0));
        slower[1].backlog = 1000;
        CHECK(vft.choose(slower, 8, base::second) == 1);
        slower[1].spare = true;
        CHECK(vft.choose(slower, 8, base::second) == 0);
    }
    SECTION("not over a spare one") {
        rails[1].spare = true;
        CHECK(shares(sched::Spread::in_turn, 4096) == std::array{1100, 0});
        CHECK(shares(sched::Spread::by_rate, 4096) == std::array{1100, 0});
    }
}

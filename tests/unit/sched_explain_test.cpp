// Decisions in words: they say what the policy does, and leave it as it is.
#include <catch2/catch.hpp>

#include <cstdlib>

#include "sched/explain.hpp"
#include "sched/vft.hpp"

using namespace railmux;
using Catch::Matchers::Contains;
using sched::Candidate;
using sched::to_ticks;

namespace {

const std::vector<std::string> names{"tcp:eth0", "tcp:eth1"};

/// 10 and 12 us away, 8 and 10 ns a byte.
std::vector<Candidate> two_rails() {
    std::vector<Candidate> rails;
    for (std::uint32_t i = 0; i < 2; ++i) {
        const auto per_byte = to_ticks(8.0 + 2 * i);
        const sched::Cost cost{to_ticks(10'000.0 + 2000 * i), per_byte, to_ticks(500.0), per_byte};
        rails.push_back({.rail = i, .cost = cost});
    }
    return rails;
}

}  // namespace

TEST_CASE("explain: one frame, and why it goes there", "[sched]") {
    sched::Vft vft(2);
    auto rails = two_rails();
    const auto why = [&](std::uint64_t bytes) {
        const auto verdict = sched::judge(vft, rails, bytes, 0, false);
        CHECK(verdict.choice == vft.choose(rails, bytes, 0));
        CHECK(verdict.prospects[verdict.choice].share == bytes);
        CHECK(verdict.prospects[verdict.choice].share_delivery == verdict.prospects[verdict.choice].delivery);
        return sched::reason(vft, verdict, rails, names);
    };
    CHECK(why(1000) == "delivers first, and would if all rails were idle");

    vft.charge(rails[0], 100'000, 0);
    rails[0].backlog = 100'000;
    const auto verdict = sched::judge(vft, rails, 1000, 0, false);
    CHECK(verdict.choice == 1);
    CHECK(std::abs(verdict.prospects[0].wait - to_ticks(800'500.0)) < to_ticks(100.0));
    CHECK(std::abs(verdict.prospects[0].delivery - to_ticks(818'500.0)) < to_ticks(100.0));
    CHECK(why(1000) == "tcp:eth0 would be fastest when idle, but is busy for 800.5 us: 796.5 us are gained");

    sched::Vft fresh(2);
    rails = two_rails();
    fresh.charge(rails[0], 450, 0);
    rails[0].backlog = 450;
    const auto close = sched::judge(fresh, rails, 1000, 0, false);
    CHECK(close.choice == 0);
    CHECK_THAT(sched::reason(fresh, close, rails, names), Contains("below the margin of 5 %"));

    sched::Vft rested(2);
    rails = two_rails();
    rails[1].cost = rails[0].cost;
    rails[1].cost.latency += to_ticks(100.0);
    rested.charge(rails[0], 16 * 1024, 0);  // and it arrived
    const auto in_turn = sched::judge(rested, rails, 16 * 1024, 1'000'000, false);
    CHECK(in_turn.choice == 1);
    CHECK_THAT(sched::reason(rested, in_turn, rails, names), Contains("it has rested for longest"));

    for (auto& rail : rails) rail.spread = sched::Spread::in_turn;
    const auto spread = sched::judge(rested, rails, 16 * 1024, 1'000'000, false);
    CHECK_FALSE(spread.rested);
    CHECK_THAT(sched::reason(rested, spread, rails, names),
               Contains("bursts like it fare best over all rails in turn, as much over each"));
    for (auto& rail : rails) rail.spread = sched::Spread::single, rail.with_heavy = true;
    rails[1].last_heavy = true;
    for (const bool behind : {false, true}) {
        for (auto& rail : rails) rail.behind = behind;
        const auto along = sched::judge(rested, rails, 8, 1'000'000, false);
        CHECK(along.choice == 1);
        CHECK_THAT(sched::reason(rested, along, rails, names), Contains("bursts like it fare best over one rail"));
    }
    for (auto& rail : rails) rail.spread = sched::Spread::predicted, rail.with_heavy = rail.behind = false;

    for (auto& rail : rails) rail.saves_up = true;
    rails[1].cost.slope += to_ticks(0.5);  // by more than the margin, and to a stream
    rails[0].stream = rails[1].stream = rails[1].recent = true;
    const auto saved_up = sched::judge(rested, rails, 16 * 1024, 1'000'000, false);
    CHECK(saved_up.choice == 1);
    CHECK_THAT(sched::reason(rested, saved_up, rails, names), Contains("for what they have not used"));

    rails = two_rails();
    rails[1].cost = rails[0].cost;
    rails[1].cost.latency += to_ticks(500.0);
    rails[1].recent = true;
    const auto followed = sched::judge(fresh, rails, 8, 0, false);
    CHECK(followed.choice == 1);
    CHECK_THAT(sched::reason(fresh, followed, rails, names), Contains("the peer used it last"));

    rails[0].behind = rails[1].behind = rails[1].favoured_light = true;
    rails[1].cost.latency *= 3;
    const auto favoured = sched::judge(fresh, rails, 8, 0, false);
    CHECK(favoured.choice == 1);
    CHECK_THAT(sched::reason(fresh, favoured, rails, names), Contains("fared best over it"));
    CHECK_THAT(sched::reason(fresh, sched::weigh(fresh, rails, 8, 0, 1), rails, names), Contains("fared best over it"));
    CHECK_FALSE(sched::weigh(fresh, rails, 4096, 0, 1).favoured);
    rails[1].favoured_heavy = true;
    CHECK(sched::weigh(fresh, rails, 4096, 0, 1).favoured);
    CHECK_FALSE(sched::judge(fresh, rails, 1 << 20, 0, true).favoured);

    rails.resize(1);
    CHECK(sched::reason(fresh, sched::judge(fresh, rails, 8, 0, false), rails, names) == "there is no other rail");
}

TEST_CASE("explain: which rule kept a frame on a rail that does not deliver first", "[sched]") {
    sched::Vft vft(2);
    auto rails = two_rails();
    const auto why = [&](std::uint64_t bytes, std::size_t choice) {
        const auto verdict = sched::judge(vft, rails, bytes, 0, false);
        CHECK(verdict.choice == choice);
        return sched::reason(vft, verdict, rails, names);
    };
    SECTION("a stream that it can join") {
        rails[0].stream = rails[1].stream = rails[1].joins = true;
        vft.charge(rails[0], 450, 0);
        rails[0].backlog = 450;  // 3.6 us of 14.1; 1.97 are to be gained
        CHECK_THAT(why(64, 0), Contains("leaves a stream that it can join") && !Contains("5 %"));
    }
    SECTION("a call of its own") {
        rails[1].cost.gap = to_ticks(20'000.0);
        rails[0].stream = rails[1].stream = true;
        vft.charge(rails[0], 2500, 0);
        rails[0].backlog = 2500;  // 20 us
        CHECK_THAT(why(64, 0), Contains("does not pay for a call of its own there"));
    }
    SECTION("an end that does not keep up: no wait counts") {
        for (auto& rail : rails) rail.behind = true;
        vft.charge(rails[0], 100'000, 0);
        rails[0].backlog = 100'000;
        CHECK_THAT(why(64, 0), Contains("does not keep up") && Contains("whatever waits") && !Contains("margin"));
        CHECK_THAT(why(1000, 1), Contains("is busy for"));
    }
}

TEST_CASE("explain: a large message is split as the policy would", "[sched]") {
    sched::Vft vft(2);
    auto rails = two_rails();
    rails[0].claimed = 10'000;
    constexpr std::uint64_t bytes = 1'000'000;
    const auto verdict = sched::judge(vft, rails, bytes, 0, true);
    std::vector<std::uint64_t> shares(2);
    vft.split(rails, bytes, 0, shares);
    CHECK(verdict.choice == 0);
    for (std::size_t i = 0; i < 2; ++i) CHECK(verdict.prospects[i].share == shares[i]);
    CHECK(verdict.prospects[0].wait == to_ticks(80'000.0));
    CHECK(verdict.prospects[0].delivery == to_ticks(8'090'000.0));
    const auto apart = verdict.prospects[0].share_delivery - verdict.prospects[1].share_delivery;
    CHECK(std::abs(apart) < to_ticks(100.0));
    CHECK_THAT(sched::reason(vft, verdict, rails, names),
               Contains("split over 2 rails") && Contains("tcp:eth0 alone would take 8090.0 us"));
}

TEST_CASE("explain: no policy changes by being asked", "[sched]") {
    const auto rails = two_rails();
    for (const char* name : {"vft", "wfq", "weighted_round_robin", "round_robin", "fixed"}) {
        const auto asked = sched::make_policy(name, 2);
        const auto left_alone = sched::make_policy(name, 2);
        for (int i = 0; i < 20; ++i) {
            const auto verdict = sched::judge(*asked, rails, 1000, i, i % 2 == 0);
            const auto choice = asked->choose(rails, 1000, i);
            CHECK(choice == left_alone->choose(rails, 1000, i));
            if (i % 2 != 0) CHECK(verdict.choice == choice);
            asked->charge(rails[choice], 1000, i);
            left_alone->charge(rails[choice], 1000, i);
        }
        const auto verdict = sched::judge(*asked, rails, 1000, 20, false);
        const auto why = sched::reason(*asked, verdict, rails, names);
        if (!asked->predicts()) CHECK_THAT(why, Contains("does not compare deliveries"));
    }
}

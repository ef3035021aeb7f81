#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "sched/vft.hpp"
#include "sched_rails.hpp"
#include "sched_sizes.hpp"

using namespace railmux;
using sched::Candidate;
using sched::Spread;
using sched::to_ticks;
using sched::Vft;
using sched::VftStage;
using sched::test::rail;
using sched::test::send;
using sched::test::split;
using test::mib;

namespace {

double delivery_ns(VftStage stage, const Candidate& candidate, std::uint64_t bytes) {
    const Vft vft(1, {.stage = stage});
    return static_cast<double>(vft.delivery(candidate, bytes, 0)) / sched::ticks_per_ns;
}

}  // namespace

TEST_CASE("each stage counts what it says", "[sched][vft]") {
    auto one = rail(0);
    one.cost.slope = to_ticks(9.0);
    CHECK(delivery_ns(VftStage::same_size, one, 100) == Approx(8 * 1024));
    CHECK(delivery_ns(VftStage::size_aware, one, 100) == Approx(800));
    CHECK(delivery_ns(VftStage::pause_aware, one, 100) == Approx(1800));
    CHECK(delivery_ns(VftStage::latency_aware, one, 100) == Approx(10'800));
    CHECK(delivery_ns(VftStage::overlap_aware, one, 100) == Approx(10'900));
}

TEST_CASE("a rail is taken for g + s G by each message", "[sched][vft]") {
    Vft vft(1);
    auto one = rail(0);
    const auto idle = vft.delivery(one, 100, 0);
    send(vft, one, 500);
    CHECK(vft.delivery(one, 100, 0) - idle == to_ticks(5000.0));
    send(vft, one, 500);
    CHECK(vft.delivery(one, 100, 0) - idle == to_ticks(10'000.0));
    CHECK(vft.delivery(one, 100, 4000) - idle == to_ticks(6000.0));
    CHECK(vft.delivery(one, 100, 1'000'000) == idle);  // the clock is never behind now
}

TEST_CASE("what has been acknowledged no longer counts, whatever the clock says", "[sched][vft]") {
    Vft vft(1);
    auto one = rail(0);
    const auto idle = vft.delivery(one, 100, 0);
    for (int i = 0; i < 10; ++i) send(vft, one, 1000);
    one.backlog = 1000;
    CHECK(vft.delivery(one, 100, 0) - idle == to_ticks(9000.0));
    one.backlog = 0;
    CHECK(vft.delivery(one, 100, 0) == idle);
}

TEST_CASE("a silent rail is expected to stay silent", "[sched][vft]") {
    Vft vft(2);
    std::array<Candidate, 2> rails{rail(0), rail(1, 16, 15'000)};
    rails[0].backlog = 100;
    rails[0].silent = 200 * base::microsecond;
    CHECK(vft.choose(rails, 64, 0) == 0);
    rails[0].silent = 2 * base::millisecond;
    CHECK(vft.choose(rails, 64, 0) == 1);
}

TEST_CASE("a slower rail is used only for a gain beyond the margin", "[sched][vft]") {
    Vft vft(2);
    std::array<Candidate, 2> rails{rail(0, 8, 100'000), rail(1, 8, 101'000)};
    CHECK(vft.choose(rails, 64, 0) == 0);
    send(vft, rails[0], 375);  // 4 us: 1 us is to be gained in a hundred
    CHECK(vft.choose(rails, 64, 0) == 0);
    send(vft, rails[0], 375);  // 8 us: 7 in a hundred
    CHECK(vft.choose(rails, 64, 0) == 1);
}

TEST_CASE("small messages leave a stream that they can join for a clear gain only", "[sched][vft]") {
    Vft vft(2);
    std::array<Candidate, 2> rails{rail(0), rail(1)};
    rails[0].stream = rails[1].stream = rails[1].joins = true;
    send(vft, rails[0], 375);  // 4 us of 14.5
    CHECK(vft.choose(rails, 64, 0) == 0);
    CHECK(vft.choose(rails, 1024, 0) == 1);
    send(vft, rails[0], 375);  // 8 us of 18.5
    CHECK(vft.choose(rails, 64, 0) == 1);
}

TEST_CASE("a post of its own is to pay off", "[sched][vft]") {
    // A call takes 4 us there, 64 bytes 0.5 us here: eleven times the difference, as a byte takes ten times as long there.
    Vft vft(2);
    std::array<Candidate, 2> rails{rail(0), rail(1, 80)};
    rails[1].cost.gap = to_ticks(4000.0);
    rails[0].stream = rails[1].stream = rails[0].joins = true;
    send(vft, rails[0], 2500);  // 20 us; 15.4 us are to be gained
    CHECK(vft.choose(rails, 64, 0) == 0);
    rails[1].joins = true;
    CHECK(vft.choose(rails, 64, 0) == 1);
    rails[1].joins = false;
    send(vft, rails[0], 4500);  // 51.4
    CHECK(vft.choose(rails, 64, 0) == 1);
}

TEST_CASE("what waits for a destination that does not keep up waits on no rail", "[sched][vft]") {
    Vft vft(2);
    std::array<Candidate, 2> rails{rail(0), rail(1, 80, 5000)};  // nearer, and ten times as slow
    CHECK(vft.choose(rails, 64, 0) == 1);
    for (auto& candidate : rails) candidate.behind = true;
    CHECK(vft.choose(rails, 64, 0) == 0);
    send(vft, rails[0], 100'000);
    CHECK(vft.choose(rails, 64, 0) == 0);
    CHECK(vft.choose(rails, 1024, 0) == 1);  // large ones wait as ever
}

TEST_CASE("frames take a favoured rail, whatever is predicted", "[sched][vft]") {
    Vft vft(2);
    std::array<Candidate, 2> rails{rail(0), rail(1, 80, 500'000)};
    for (auto& candidate : rails) candidate.behind = true;
    rails[1].favoured_light = true;
    CHECK(vft.choose(rails, 64, 0) == 1);
    CHECK(vft.choose(rails, 1024, 0) == 0);
    rails[1].spare = true;
    CHECK(vft.choose(rails, 64, 0) == 0);
    rails[1] = {.rail = 1, .cost = rails[1].cost, .behind = true, .favoured_heavy = true};
    CHECK(vft.choose(rails, 1024, 0) == 1);
    CHECK(vft.choose(rails, sched::heavy_bytes + 1, 0) == 0);
    rails[0].favoured_light = true;
    CHECK(vft.choose(rails, 64, 0) == 1);  // goes along
    for (auto& candidate : rails) candidate.behind = false;
    CHECK(vft.choose(rails, 1024, 0) == 0);
}

TEST_CASE("a rail without end costs no more than a day", "[sched][vft]") {
    Vft vft(2);
    std::array<Candidate, 2> rails{rail(0, 0), rail(1)};
    for (auto& candidate : rails) candidate.stream = true;
    rails[0].joins = true;
    rails[0].silent = base::second;
    rails[0].backlog = 1;
    rails[1].cost.gap = to_ticks(1e9);
    rails[1].cost.per_byte = to_ticks(8.64e13) / 1024;
    CHECK(vft.choose(rails, 64, 0) == 0);
}

TEST_CASE("what joins others on a stream is charged no gap", "[sched][vft]") {
    Vft vft(1);
    auto one = rail(0);
    one.stream = true;
    const auto idle = vft.delivery(one, 100, 0);
    send(vft, one, 500);
    CHECK(vft.delivery(one, 100, 0) - idle == to_ticks(5000.0));
    one.joins = true;
    send(vft, one, 500);
    CHECK(vft.delivery(one, 100, 0) - idle == to_ticks(9000.0));
}

TEST_CASE("what is known to be still on the rail sets a clock that is behind", "[sched][vft]") {
    Vft vft(1);
    auto one = rail(0, 1);
    one.stream = one.joins = true;
    const auto idle = vft.delivery(one, 100, 0);
    send(vft, one, 100'000);  // thought to take 100 us
    one.cost.per_byte = to_ticks(8.0);
    CHECK(vft.delivery(one, 100, 0) - idle == to_ticks(100'000.0));
    vft.left(one, 50'000, 400'000);
    one.backlog = 50'000;
    CHECK(vft.delivery(one, 100, 500'000) - idle == to_ticks(300'000.0));
    vft.left(one, 1000, 400'000);  // it never goes back
    CHECK(vft.delivery(one, 100, 500'000) - idle == to_ticks(300'000.0));
}

TEST_CASE("clocks count from where a policy begins, however long its host has been up", "[sched][vft]") {
    constexpr base::Nanoseconds up = 400 * 86'400 * base::second;  // in ticks from there it would be past 63 bits
    Vft young(2), old(2, {.begin = up});
    std::array<Candidate, 2> rails{rail(0), rail(1, 16)};
    auto others = rails;
    for (base::Nanoseconds now = 0; now < base::millisecond; now += 50 * base::microsecond) {
        const auto choice = young.choose(rails, 4096, now);
        CHECK(old.choose(others, 4096, up + now) == choice);
        send(young, rails[choice], 4096, now);
        send(old, others[choice], 4096, up + now);
        for (std::size_t i = 0; i < 2; ++i) {
            CHECK(young.delivery(rails[i], 100, now) == old.delivery(others[i], 100, up + now));
        }
        young.left(rails[0], 1000, now);
        old.left(others[0], 1000, up + now);
    }
}

TEST_CASE("of rails about equal the recent one is chosen", "[sched][vft]") {
    Vft vft(2);
    std::array<Candidate, 2> rails{rail(0), rail(1, 8, 10'400)};
    CHECK(vft.choose(rails, 64, 0) == 0);
    rails[1].recent = true;
    CHECK(vft.choose(rails, 64, 0) == 1);
}

TEST_CASE("rails that save up get messages in turn though one is thought to be faster", "[sched][vft]") {
    const std::size_t which = GENERATE(0U, 1U, 2U);  // of the other one nothing is known
    const bool saves_up = which < 2;
    Vft vft(2);
    std::array<Candidate, 2> rails{rail(0, 8), rail(1, 8.5)};
    if (saves_up) (GENERATE(false, true) ? rails[which].saves_up : rails[which].bounded) = true;
    base::Nanoseconds now = 0;
    std::array<int, 2> got{};
    for (int i = 0; i < 10; ++i, now += 200 * base::microsecond) {
        const auto choice = vft.choose(rails, 16 * 1024, now);
        ++got[choice];
        auto chosen = rails[choice];
        send(vft, chosen, 16 * 1024, now);  // and it arrives
    }
    CHECK(got[1] == (saves_up ? 5 : 0));
}

TEST_CASE("of rails about equal heavy messages get the one that has rested for longest", "[sched][vft]") {
    Vft vft(2);
    std::array<Candidate, 2> rails{rail(0), rail(1, 8, 10'400)};
    base::Nanoseconds now = 0;
    std::size_t last = 1;
    for (int i = 0; i < 10; ++i, now += 200 * base::microsecond) {
        rails[0].recent = last == 0;
        rails[1].recent = last == 1;
        const auto choice = vft.choose(rails, 16 * 1024, now);
        CHECK(choice != last);
        auto chosen = rails[choice];
        send(vft, chosen, 16 * 1024, now);  // and it arrives
        last = choice;
    }
    rails[last].recent = true;
    rails[1 - last].recent = false;
    CHECK(vft.choose(rails, 1024, now) == last);  // not worth it
    auto busy = rails;
    busy[last].backlog = 1024;
    CHECK(vft.choose(busy, 16 * 1024, now) == last);                        // nor is the wait for that
    const std::array<Candidate, 3> three{rails[0], rails[1], rail(2, 80)};  // one that is no match changes nothing
    Vft other(3);
    auto first = three;
    send(other, first[0], 16 * 1024, now);
    CHECK(other.choose(three, 16 * 1024, now + base::millisecond) == 1);
    rails[1 - last].cost.slope *= 2;  // not about equal
    rails[1 - last].cost.per_byte *= 2;
    CHECK(vft.choose(rails, 16 * 1024, now) == last);
}

TEST_CASE("whoever has a lead is chosen until it is used up", "[sched][vft]") {
    std::minstd_rand random(7);
    const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random()) % end; };
    const bool heavy = GENERATE(false, true);
    std::array<int, sched::spreads> led{};
    for (int round = 0; round < 2000; ++round) {
        Vft vft(4);
        std::vector<Candidate> rails;
        const auto spread = static_cast<Spread>(heavy ? below(sched::spreads) : 3 * below(2));
        const bool with_heavy = below(2) == 0;
        const auto last_heavy = below(4);
        const bool behind = below(4) == 0;          // the destination of all of them
        const bool alone = heavy && below(2) == 0;  // each has arrived before the next one goes
        for (std::uint32_t i = 0, count = 2 + below(3); i < count; ++i) {
            rails.push_back(rail(i, 0.1 + below(80) / 10.0, 300.0 + below(20'000)));
            if (i > 0 && below(4) == 0) rails[i].cost = rails[0].cost;  // of the same kind
            rails[i].behind = behind;
            rails[i].favoured_light = behind && below(8) == 0;
            rails[i].favoured_heavy = behind && below(8) == 0;
            if (i == 0 || rails[i].cost.per_byte != rails[0].cost.per_byte)
                rails[i].cost.gap = to_ticks(50.0 + below(2000));
            rails[i].recent = below(4) == 0;
            rails[i].spare = below(8) == 0;
            rails[i].stream = below(2) == 0;
            rails[i].spread = spread;
            rails[i].with_heavy = with_heavy;
            rails[i].last_heavy = i == last_heavy;
            rails[i].saves_up = below(8) == 0;
            for (auto more = alone ? 0 : below(4); more > 0; --more) send(vft, rails[i], below(3000));
        }
        const auto least = static_cast<std::uint32_t>(heavy ? sched::light_bytes + 1 : 0);
        const auto most = static_cast<std::uint32_t>(heavy           ? least + below(16'000)
                                                     : below(2) == 0 ? sched::small_bytes
                                                                     : sched::light_bytes);
        base::Nanoseconds now = 0;
        const auto place = vft.choose(rails, least + below(most - least + 1), now);
        auto left = vft.lead(rails, place, most, now);
        const bool along = place_along(rails, most) < rails.size();
        if (behind && !heavy && !rails[place].spare && !along) CHECK(left > to_ticks(base::second));
        auto& leader = rails[place];
        for (int count = 0; count < 100 && left > 0; ++count, now += below(100)) {
            const auto bytes = least + below(most - least + 1);
            CAPTURE(heavy, round, count, bytes, place, static_cast<int>(spread));
            REQUIRE(vft.choose(rails, bytes, now) == place);
            REQUIRE((behind || (spread != Spread::in_turn && spread != Spread::by_rate)));
            leader.joins = true;
            send(vft, leader, bytes, now);
            if (alone) leader.backlog = 0;
            left -= (leader.stream ? 0 : leader.cost.gap) + sched::times(bytes, leader.cost.per_byte);
            ++led[static_cast<std::size_t>(spread)];
        }
    }
    const auto led_by = [&](Spread way) { return led[static_cast<std::size_t>(way)]; };
    CHECK(led_by(Spread::predicted) > (heavy ? 500 : 5000));
    CHECK(led_by(Spread::single) > 500);
}

TEST_CASE("consecutive small messages to different peers spread over the rails", "[sched][vft]") {
    // Peers share the rails: the candidates of all of them see the same backlog.
    Vft vft(2);
    std::array<Candidate, 2> rails{rail(0), rail(1)};
    std::array<int, 2> count{};
    for (int peer = 0; peer < 20; ++peer) {
        const auto choice = vft.choose(rails, 64, 0);
        ++count[choice];
        send(vft, rails[choice], 64);
    }
    CHECK(count[0] == 10);
    CHECK(count[1] == 10);
}

TEST_CASE("a spare rail is used only where there is no other", "[sched][vft]") {
    std::array<Candidate, 3> rails{rail(0), rail(1, 4, 5'000), rail(2)};
    Vft vft(3);
    rails[1].spare = true;
    for (int i = 0; i < 8; ++i) {
        const auto place = vft.choose(rails, 4096, 0);
        CHECK(place != 1);
        send(vft, rails[place], 4096);
    }
    CHECK(split(vft, rails, mib)[1] == 0);
    for (auto& each : rails) each.spare = true;
    CHECK(vft.choose(rails, 4096, 0) < rails.size());
    const auto shares = split(vft, rails, mib);
    CHECK(std::ranges::count(shares, std::uint64_t{0}) < 3);
}

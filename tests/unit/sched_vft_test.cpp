#include "sched/vft.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "sched/filling.hpp"

using namespace railmux;
using sched::Candidate;
using sched::Ticks;
using sched::to_ticks;
using sched::Vft;

namespace {

/// A rail of so many Mbit/s and so much latency.
Candidate rail(std::uint32_t number, double mbit, base::Nanoseconds latency = 10 * base::microsecond) {
    const auto per_byte = to_ticks(8e3 / mbit);
    return {.rail = number,
            .cost = {.latency = to_ticks(latency),
                     .slope = per_byte,
                     .gap = to_ticks(base::Nanoseconds{100}),
                     .per_byte = per_byte}};
}

std::vector<std::uint64_t> split(std::span<const Candidate> rails, std::uint64_t bytes) {
    Vft vft(rails.size());
    std::vector<std::uint64_t> shares(rails.size(), 99);
    vft.split(rails, bytes, 0, shares);
    return shares;
}

/// Hands over `count` messages of `bytes` at once; how many each rail took.
std::vector<int> burst(Vft& vft, std::vector<Candidate> rails, int count, std::uint64_t bytes,
                       base::Nanoseconds now = 0) {
    std::vector<int> taken(rails.size(), 0);
    for (int i = 0; i < count; ++i) {
        const auto place = vft.choose(rails, bytes, now);
        vft.charge(rails[place], bytes, now);
        rails[place].backlog += bytes;
        ++taken[place];
    }
    return taken;
}

}  // namespace

TEST_CASE("vft: a lone message takes the rail that delivers it first", "[sched]") {
    Vft vft(2);
    // Low latency for the small, bandwidth for the large: they cross at 20 us / (80 - 8) ns = 278 bytes.
    const std::array rails{rail(0, 1000, 40 * base::microsecond), rail(1, 100, 20 * base::microsecond)};
    CHECK(vft.choose(rails, 8, 0) == 1);
    CHECK(vft.choose(rails, 100'000, 0) == 0);
    CHECK(vft.delivery(rails[0], 1000, 0) == to_ticks(40 * base::microsecond) + 1000 * rails[0].cost.slope);
}

TEST_CASE("vft: a burst is spread in proportion to the rates", "[sched]") {
    Vft vft(2);
    const auto taken = burst(vft, {rail(0, 1000), rail(1, 100)}, 110, 16'384);
    CHECK(taken[0] >= 99);
    CHECK(taken[0] <= 101);
}

TEST_CASE("vft: a slower rail is used only for a clear gain", "[sched]") {
    Vft vft(2);
    // After nine messages the tenth would be delivered 3 % earlier on the slow rail: not enough.
    auto fast = rail(0, 1000);
    const auto slow = rail(1, 100);
    const auto one = 10'000U;
    fast.backlog = 103 * one / 11;
    vft.charge(fast, fast.backlog, 0);
    const std::array rails{fast, slow};
    const auto on_fast = vft.delivery(fast, one, 0);
    const auto on_slow = vft.delivery(slow, one, 0);
    REQUIRE(on_slow < on_fast);
    REQUIRE(on_slow > on_fast - on_fast / 20);
    CHECK(vft.choose(rails, one, 0) == 0);
}

TEST_CASE("vft: what is acknowledged is no longer waited for, whatever the clock says", "[sched]") {
    Vft vft(1);
    auto only = rail(0, 1);  // thought to be very slow
    vft.charge(only, 100'000, 0);
    only.backlog = 100'000;
    CHECK(vft.delivery(only, 1, 0) > to_ticks(700 * base::millisecond));
    only.backlog = 0;
    CHECK(vft.delivery(only, 1, 0) < to_ticks(30 * base::microsecond));
}

TEST_CASE("vft: a rail that has gone silent is not given more", "[sched]") {
    Vft vft(2);
    auto silent = rail(0, 1000);
    vft.charge(silent, 1000, 0);
    silent.backlog = 1000;
    silent.silent = 20 * base::millisecond;
    const std::array rails{silent, rail(1, 10)};
    CHECK(vft.choose(rails, 8, 20 * base::millisecond) == 1);
}

TEST_CASE("vft: the clock is never behind now", "[sched]") {
    Vft vft(1);
    auto only = rail(0, 1000);
    vft.charge(only, 1'000'000, 0);
    only.backlog = 1'000'000;
    const auto later = base::second;
    CHECK(vft.delivery(only, 1, later) <= only.cost.latency + only.cost.slope);
}

TEST_CASE("vft: consecutive small messages to different peers spread over the rails", "[sched]") {
    Vft vft(2);  // one policy for all peers: the clock of a rail is shared
    const auto taken = burst(vft, {rail(0, 1000), rail(1, 1000)}, 64, 4096);
    CHECK(std::abs(taken[0] - taken[1]) <= 2);
}

TEST_CASE("split: all rails end together", "[sched]") {
    const std::array rails{rail(0, 1000, 20'000), rail(1, 400, 100'000), rail(2, 100, 10'000)};
    const auto bytes = std::uint64_t{4} << 20;
    const auto shares = split(rails, bytes);
    CHECK(std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}) == bytes);
    const auto end = [&](std::size_t i) {
        return rails[i].cost.latency + static_cast<Ticks>(shares[i]) * rails[i].cost.per_byte;
    };
    CHECK(std::abs(end(0) - end(1)) <= 2 * rails[2].cost.per_byte);
    CHECK(std::abs(end(0) - end(2)) <= 2 * rails[2].cost.per_byte);
}

TEST_CASE("split: no share below the smallest, none without a gain", "[sched]") {
    const std::array rails{rail(0, 1000), rail(1, 100)};
    CHECK(split(rails, 100'000) == std::vector<std::uint64_t>{100'000, 0});  // the slow one would get 9 KB
    const std::array uneven{rail(0, 10'000), rail(1, 100)};
    CHECK(split(uneven, 64 << 20) == std::vector<std::uint64_t>{64 << 20, 0});  // a gain of 1 %
}

TEST_CASE("split: what only one rail can carry leaves the other to the rest", "[sched]") {
    // The thesis' example: A is reachable over rail 1 only, B over 1 and 2, one large message each: all of B's over rail 2.
    const auto bytes = std::uint64_t{1} << 20;
    std::array to_b{rail(0, 1000), rail(1, 1000)};
    to_b[0].claimed = bytes;
    CHECK(split(to_b, bytes) == std::vector<std::uint64_t>{0, bytes});
}

TEST_CASE("split: more rails than a filling holds lose no byte", "[sched]") {
    std::vector<Candidate> rails;
    for (std::uint32_t i = 0; i < 2 * sched::Filling::most_rails; ++i) rails.push_back(rail(i, 1000, 1000 * (70 - i)));
    const auto shares = split(rails, 64 << 20);
    CHECK(std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}) == 64 << 20);
}

TEST_CASE("split: adding a rail never makes it end later, in random instances", "[sched]") {
    std::mt19937_64 random(7);
    const auto uniform = [&](double from, double to) { return std::uniform_real_distribution(from, to)(random); };
    for (int instance = 0; instance < 10'000; ++instance) {
        const auto count = 1 + random() % 4;
        std::vector<Candidate> rails;
        for (std::uint32_t i = 0; i <= count; ++i) {
            rails.push_back(
                rail(i, std::exp(uniform(2, 11)), static_cast<base::Nanoseconds>(std::exp(uniform(7, 14)))));
        }
        const auto bytes = static_cast<std::uint64_t>(std::exp(uniform(9, 18)));
        const auto end = [&](std::span<const Candidate> with) {
            const auto shares = split(with, bytes);
            REQUIRE(std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}) == bytes);
            Ticks last = 0;
            for (std::size_t i = 0; i < with.size(); ++i) {
                if (shares[i] == 0) continue;
                last = std::max(last, with[i].cost.latency + static_cast<Ticks>(shares[i]) * with[i].cost.per_byte);
            }
            return last;
        };
        const auto before = end(std::span(rails).first(count));
        const auto after = end(rails);
        INFO("instance " << instance);
        // A split that gains less than the margin of 5 % is not made, so that much may be lost to it; and as much as the
        // smallest share of 16 KiB, which is not made either.
        CHECK(static_cast<double>(after) <= static_cast<double>(before) / 0.95 * 1.01);
    }
}

TEST_CASE("vft: stages leave out what they do not know", "[sched]") {
    const auto delivery = [](sched::VftStage stage, std::uint64_t bytes) {
        Vft vft(1, {.stage = stage});
        auto only = rail(0, 1000);
        only.cost.slope *= 2;
        return vft.delivery(only, bytes, 0);
    };
    const auto G = to_ticks(8.0);
    const auto gap = to_ticks(base::Nanoseconds{100});
    const auto latency = to_ticks(10 * base::microsecond);
    CHECK(delivery(sched::VftStage::same_size, 1) == delivery(sched::VftStage::same_size, 1 << 20));
    CHECK(delivery(sched::VftStage::size_aware, 1000) == 1000 * G);
    CHECK(delivery(sched::VftStage::pause_aware, 1000) == gap + 1000 * G);
    CHECK(delivery(sched::VftStage::latency_aware, 1000) == latency + 1000 * G);
    CHECK(delivery(sched::VftStage::overlap_aware, 1000) == latency + 2000 * G);
}

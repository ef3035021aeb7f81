#include "sched/settling.hpp"

#include <catch2/catch.hpp>
#include <vector>

#include "sched_sizes.hpp"

using namespace railmux;
using sched::to_ticks;
using test::kib;

namespace {

/// A rail whose rate was shown by trains.
sched::Pace by_trains(double per_byte) {
    sched::Pace pace;
    const auto service = static_cast<base::Nanoseconds>(64.0 * kib * per_byte);
    base::Nanoseconds now = 0;
    for (int i = 0; i < 16; ++i) {
        pace.sent(64 * kib, now);
        now += service;
        pace.delivered(64 * kib);
        pace.lone({64 * kib, 1, service}, 1, now, 0);
        pace.settle(now, 0);
    }
    return pace;
}

/// Two rails as they look to a policy, by G in ns; one that is not `sure` has shown it by trains.
struct SettlingRails {
    std::vector<sched::Pace> paces{2};
    std::vector<sched::Candidate> candidates{2};

    SettlingRails(double first, bool first_sure, double second, bool second_sure) {
        set(0, first, first_sure);
        set(1, second, second_sure);
        sched::even_out(candidates, paces, 0);
    }
    void set(std::uint32_t rail, double per_byte, bool sure) {
        const auto ticks = to_ticks(per_byte);
        candidates[rail].rail = rail;
        candidates[rail].cost = {.latency = 1000, .slope = ticks + 100, .gap = 10, .per_byte = ticks};
        if (sure) {
            paces[rail].measured(ticks, 0);
        } else {
            paces[rail] = by_trains(per_byte);
        }
    }
    [[nodiscard]] double per_byte(std::size_t place) const { return sched::to_ns(candidates[place].cost.per_byte); }
};

}  // namespace

TEST_CASE("rails that are known by trains only are taken for equally fast", "[sched][settling]") {
    const SettlingRails rails(5, false, 8, false);
    CHECK(rails.per_byte(0) == 5);
    CHECK(rails.per_byte(1) == 5);
    CHECK(rails.candidates[0].cost == rails.candidates[1].cost);
}

TEST_CASE("... and for as fast as one that is known well", "[sched][settling]") {
    const SettlingRails rails(5, false, 8, true);
    CHECK(rails.per_byte(0) == 8);
    CHECK(rails.per_byte(1) == 8);
}

TEST_CASE("rails that are clearly different, or both known, are left as they are", "[sched][settling]") {
    const SettlingRails different(5, false, 12, false);
    CHECK(different.per_byte(0) == 5);
    CHECK(different.per_byte(1) == 12);
    const SettlingRails known(5, true, 8, true);
    CHECK(known.per_byte(0) == 5);
    CHECK(known.per_byte(1) == 8);
}

TEST_CASE("what is only a guess is no better known", "[sched][settling]") {
    SettlingRails rails(8, false, 16, true);
    rails.set(0, 8, false);
    rails.paces[1] = sched::Pace{};
    rails.candidates[1].cost.per_byte = to_ticks(16.0);
    sched::even_out(rails.candidates, rails.paces, 0);
    CHECK(rails.per_byte(0) == 8);
}

TEST_CASE("of rails of which bursts show no more than what they took at most nobody knows which is faster",
          "[sched][settling]") {
    const auto second = GENERATE(2.0, 7.0, 9.0);
    std::vector<sched::Candidate> candidates(2);
    const std::vector<sched::Pace> paces(2);
    for (std::uint32_t rail = 0; rail < 2; ++rail) {
        const auto ticks = to_ticks(rail == 0 ? 2.0 : second);
        candidates[rail] = {.rail = rail,
                            .cost = {.latency = 1000, .slope = ticks + 100, .gap = 10, .per_byte = ticks}};
    }
    auto known = candidates;
    sched::even_out(known, paces, 0);
    CHECK(known[1].cost.per_byte == to_ticks(second));
    for (auto& candidate : candidates) candidate.bounded = true;
    sched::even_out(candidates, paces, 0);
    CHECK(candidates[0].cost.per_byte == to_ticks(2.0));
    CHECK(candidates[1].cost.per_byte == to_ticks(second <= 8 ? 2.0 : second));
}

TEST_CASE("a rail of which a bound is known is taken for as fast as one that is known well and up to 4 times as slow",
          "[sched][settling]") {
    const auto known = GENERATE(4.0, 7.0, 9.0);
    SettlingRails rails(2, true, known, true);
    rails.paces[0] = sched::Pace{};
    rails.candidates[0].bounded = true;
    sched::even_out(rails.candidates, rails.paces, 0);
    CHECK(rails.per_byte(0) == (known <= 8 ? known : 2));  // bursts pass faster than what is sustained
    CHECK(rails.per_byte(1) == known);
}

TEST_CASE("a doubtful rail that is alike is no further away than traffic allows", "[sched][settling]") {
    const bool sure = GENERATE(false, true);
    const auto per_byte = GENERATE(8.0, 80.0);
    SettlingRails rails(8, true, per_byte, sure);
    rails.candidates[1].cost.latency = to_ticks(62'000.0);
    rails.candidates[1].latency_bound = to_ticks(5000.0);
    sched::even_out(rails.candidates, rails.paces, 0);
    CHECK(rails.candidates[1].cost.latency == to_ticks(sure || per_byte > 8 ? 62'000.0 : 5000.0));
    CHECK(rails.candidates[0].cost.latency == 1000);
}

TEST_CASE("a trial that shows what is known leaves no doubt", "[sched][settling]") {
    const auto took = GENERATE(8.0, 7.0, 3.0);
    sched::Pace pace;
    pace.measured(to_ticks(8.0), 0);
    const auto later = base::second;  // of traffic over others
    CHECK(pace.tried(later));
    pace.sent(16 * kib, 0);
    pace.delivered(16 * kib);
    pace.lone({16 * kib, 1, static_cast<base::Nanoseconds>(took * 16 * kib)}, to_ticks(2.0), base::second, later);
    CHECK(!pace.tried(later));
    CHECK(pace.doubtful() == (took < 6));
}

TEST_CASE("a rate by trains is doubtful, until there is a backlog", "[sched][settling]") {
    CHECK(!sched::Pace{}.doubtful());
    auto pace = by_trains(8);
    CHECK(pace.per_byte() > 0);
    CHECK(pace.doubtful());
    base::Nanoseconds now = base::second;
    pace.sent(8192 * kib, now);
    for (int i = 0; i < 100; ++i) {
        now += 64 * kib * 8;
        pace.delivered(64 * kib);
        pace.settle(now, 0);
    }
    CHECK(!pace.doubtful());
}

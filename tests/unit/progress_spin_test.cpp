// Spin: how long is spun, and when not at all.
#include <catch2/catch.hpp>

#include <thread>

#include "progress/spin.hpp"

using railmux::base::microsecond;
using railmux::base::millisecond;
using railmux::base::Nanoseconds;
using railmux::progress::Spin;

namespace {

/// A core, and who wants it.
struct Core {
    Nanoseconds now = railmux::base::second;
    Nanoseconds others = 0;  // run so long when the core is given away
    std::uint64_t evicted = 0;
    int yields = 0;
};
Core core;

constexpr Spin::Senses senses{.clock = [] { return core.now; },
                              .yield =
                                  [] {
                                      ++core.yields;
                                      core.evicted += core.others > 0 ? 1 : 0;
                                      core.now += core.others + 400;
                                  },
                              .evicted = [] { return core.evicted; }};

/// Looks in vain, one microsecond each, until it should sleep; for how long it did.
Nanoseconds spin_once(Spin& spin, Nanoseconds answer, Nanoseconds unseen = 0) {
    const auto since = core.now;
    while (!spin.over(core.now, since, [&] { return Spin::Outlook{answer, unseen}; })) core.now += microsecond;
    return core.now - since;
}

}  // namespace

TEST_CASE("spin: as long as an answer takes and a sleep costs, and never longer than allowed", "[progress]") {
    core = {};
    Spin spin(50 * microsecond, senses);
    const auto about = [&](Nanoseconds answer, Nanoseconds expected) {
        core.now += millisecond;
        const auto spun = spin_once(spin, answer);
        INFO("an answer takes " << answer << ", spun " << spun);
        return spun >= expected && spun <= expected + 3 * microsecond;
    };
    CHECK(about(2 * microsecond, 2 * microsecond + Spin::sleep_cost));
    CHECK(about(20 * microsecond, 20 * microsecond + Spin::sleep_cost));
    CHECK(about(45 * microsecond, 50 * microsecond));
    CHECK(about(0, 50 * microsecond));                // nobody knows
    CHECK(about(5 * millisecond, Spin::sleep_cost));  // it will not come while we spin
    core.now += millisecond;
    const auto unseen = 100 * microsecond;
    const auto spun = spin_once(spin, 20 * microsecond, unseen);
    CHECK(spun >= 20 * microsecond + Spin::sleep_cost + unseen);
    CHECK(spun <= 50 * microsecond + unseen);
    Spin none(0, senses);
    CHECK(spin_once(none, 2 * microsecond) <= microsecond);
    CHECK(spin_once(none, 2 * microsecond, unseen) <= microsecond);
}

TEST_CASE("spin: after a sleep that was too short all that is allowed, after others less again", "[progress]") {
    core = {};
    Spin spin(50 * microsecond, senses);
    const auto wait = [&](Nanoseconds until_woken) {
        core.now += millisecond;
        const auto since = core.now;
        const auto spun = spin_once(spin, 2 * microsecond);
        core.now = since + std::max(spun, until_woken);
        spin.woken(core.now, since);
        return spun;
    };
    const auto usual = wait(200 * microsecond);
    CHECK(usual < 2 * microsecond + Spin::sleep_cost + 3 * microsecond);
    CHECK(wait(30 * microsecond) == usual);
    CHECK(wait(100 * microsecond) >= 50 * microsecond);
    auto before = wait(100 * microsecond);
    for (int i = 0; i < 20; ++i) {
        const auto spun = wait(100 * microsecond);
        CHECK(spun <= before);
        before = spun;
    }
    CHECK(before <= usual + microsecond);
    Spin none(0, senses);
    none.woken(core.now, core.now - microsecond);
    CHECK(spin_once(none, 2 * microsecond) <= microsecond);
}

TEST_CASE("spin: who has the core to himself spins on", "[progress]") {
    core = {};
    Spin spin(50 * microsecond, senses);
    for (int i = 0; i < 1000; ++i) {
        core.now += 30 * microsecond;
        if (i % 100 == 50) ++core.evicted;  // a kernel thread
        spin_once(spin, 2 * microsecond);
        CHECK_FALSE(spin.crowded(core.now));
    }
    CHECK(core.yields < 500);  // and seldom asks
}

TEST_CASE("spin: where others want the core nobody spins, and it is tried again ever more seldom", "[progress]") {
    core = {};
    Spin spin(50 * microsecond, senses);
    const bool by_yield = GENERATE(true, false);
    const auto wait_for = [&](Nanoseconds time) {
        Nanoseconds spun = 0;
        for (const auto end = core.now + time; core.now < end; core.now += 20 * microsecond) {
            core.others = by_yield ? 30 * microsecond : 0;
            core.evicted += by_yield ? 0 : 1;
            spun += spin_once(spin, 2 * microsecond);
        }
        return spun;
    };
    wait_for(millisecond);
    CHECK(spin.crowded(core.now));
    wait_for(500 * millisecond);
    CHECK(wait_for(500 * millisecond) < millisecond);  // a thousandth of the time, and less
    // Alone again, it notices within the longest hold, and then spins as before.
    core.others = 0;
    core.now += Spin::longest_hold;
    for (int i = 0; i < 10; ++i, core.now += 200 * microsecond) spin_once(spin, 2 * microsecond);
    CHECK_FALSE(spin.crowded(core.now));
    CHECK(spin_once(spin, 2 * microsecond) >= Spin::sleep_cost);
}

TEST_CASE("spin: who tries again sees at once that others still want the core, however short their turns",
          "[progress]") {
    core = {.others = microsecond};
    Spin spin(50 * microsecond, senses);
    for (int i = 0; i < 100 && !spin.crowded(core.now); ++i, core.now += 20 * microsecond)
        spin_once(spin, 2 * microsecond);
    for (int tries = 0; tries < 5; ++tries) {
        REQUIRE(spin.crowded(core.now));
        while (spin.crowded(core.now)) core.now += millisecond;
        CHECK(spin_once(spin, 2 * microsecond) <= Spin::first_look + 2 * microsecond);
    }
}

TEST_CASE("spin: what was taken from one thread is no sign for another", "[progress]") {
    core = {};
    Spin spin(50 * microsecond, senses);
    for (int i = 0; i < 50; ++i) {
        core.now += 30 * microsecond;
        core.evicted = 5;
        spin_once(spin, 200 * microsecond);
        core.evicted = 1000;
        std::thread([&] { spin_once(spin, 200 * microsecond); }).join();
        CHECK_FALSE(spin.crowded(core.now));
    }
}

TEST_CASE("spin: in a crowd who expects a quick answer gives way before he sleeps, and nobody else", "[progress]") {
    const auto ways_given = [](Nanoseconds most, Nanoseconds answer) {
        core = {.others = 20 * microsecond};
        Spin spin(most, senses);
        for (int i = 0; i < 100 && !spin.crowded(core.now); ++i, core.now += 150 * microsecond) spin_once(spin, answer);
        CHECK((most == 0 || spin.crowded(core.now)));
        const auto since = core.now;
        int ways = 0;
        while (spin.gave_way(core.now, since, [&] { return Spin::Outlook{answer}; })) ++ways;
        CHECK(core.now - since <= most + core.others + microsecond);
        return ways;
    };
    CHECK(ways_given(50 * microsecond, 2 * microsecond) == 3);  // of 20.4 us each
    CHECK(ways_given(50 * microsecond, Spin::sleep_cost + 1) == 0);
    CHECK(ways_given(50 * microsecond, 0) == 0);  // nobody knows
    CHECK(ways_given(0, 2 * microsecond) == 0);
}

TEST_CASE("spin: in a crowd that was there before anybody knew how long an answer takes, that is asked again",
          "[progress]") {
    core = {.others = 2 * microsecond};
    Spin spin(50 * microsecond, senses);
    for (int i = 0; i < 100 && !spin.crowded(core.now); ++i, core.now += 20 * microsecond) spin_once(spin, 0);
    Nanoseconds answer = 0;
    const auto gives_way = [&] { return spin.gave_way(core.now, core.now, [&] { return Spin::Outlook{answer}; }); };
    CHECK_FALSE(gives_way());
    answer = 2 * microsecond;
    core.now += Spin::check_period;
    REQUIRE(spin.crowded(core.now));
    CHECK(gives_way());
    answer = millisecond;  // the quick link is gone
    core.now += Spin::check_period;
    CHECK_FALSE(gives_way());
}

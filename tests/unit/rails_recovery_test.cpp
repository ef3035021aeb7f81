// Recovery: when a lost link is asked for anew, and by whom.
#include <catch2/catch.hpp>

#include <algorithm>
#include <tuple>
#include <vector>

#include "rails/recovery.hpp"

using namespace railmux;
using rails::Recovery;

namespace {

constexpr auto recovery_ms = base::millisecond;
constexpr Recovery::Pair lost_pair{.peer = 3, .rail = 1, .remote_rail = 2};

Recovery::Lost lost_link(bool ours = true, std::uint32_t peer = lost_pair.peer) {
    Recovery::Lost lost;
    lost.pair = lost_pair;
    lost.pair.peer = peer;
    lost.cause = "pulled";
    lost.ours = ours;
    return lost;
}

const auto always = [](std::uint32_t, std::uint32_t) { return true; };
const auto never = [](std::uint32_t, std::uint32_t) { return false; };

/// The times of the tries until `end`, each of which fails after `takes`.
std::vector<base::Nanoseconds> tries(Recovery& recovery, base::Nanoseconds end, base::Nanoseconds takes = 0) {
    std::vector<base::Nanoseconds> times;
    for (auto now = recovery.next_due(); now <= end; now = std::max(now + takes, recovery.next_due())) {
        const auto due = recovery.take_due(now, always);
        REQUIRE(due);
        if (due->pair == lost_pair) times.push_back(now);
        recovery.failed(due->pair, now + takes);
    }
    return times;
}

/// The longest time between two of them that follow each other, both in [begin, end).
base::Nanoseconds longest_gap(const std::vector<base::Nanoseconds>& times, base::Nanoseconds begin,
                              base::Nanoseconds end) {
    base::Nanoseconds longest = 0;
    for (std::size_t i = 1; i < times.size(); ++i) {
        if (times[i - 1] >= begin && times[i] < end) longest = std::max(longest, times[i] - times[i - 1]);
    }
    return longest;
}

}  // namespace

TEST_CASE("a lost link is asked for soon, then less often, and no less after that", "[rails][recovery]") {
    Recovery recovery({}, GENERATE(1, 2, 3));
    recovery.lost(lost_link(), 0);
    const auto times = tries(recovery, 120 * base::second);
    CHECK(times.front() >= 37 * recovery_ms);
    CHECK(times.front() <= 63 * recovery_ms);
    for (std::size_t i = 1; i < times.size(); ++i) {
        const auto gap = times[i] - times[i - 1];
        CHECK(gap >= 37 * recovery_ms);
        if (i > 6) CHECK(gap >= 374 * recovery_ms);
        CHECK(gap <= 626 * recovery_ms);  // half a second and a quarter of that
    }
    CHECK(times.size() > 200);
}

// While a network is silent a try takes all the time that it may have. Whoever restores it just after one has begun waits for
// the next.
TEST_CASE("the time that a try takes is part of the wait for the next", "[rails][recovery]") {
    Recovery recovery({}, GENERATE(1, 2, 3));
    recovery.lost(lost_link(), 0);
    const auto times = tries(recovery, 30 * base::second, 400 * recovery_ms);
    CHECK(longest_gap(times, 0, 30 * base::second) <= 626 * recovery_ms);
    CHECK(longest_gap(times, 5 * base::second, 30 * base::second) >= 500 * recovery_ms);
}

TEST_CASE("many that are lost for long are asked for less often, but no less than every few seconds",
          "[rails][recovery]") {
    const auto [count, least, most] =
        GENERATE(std::tuple{50, 400, 626}, std::tuple{200, 2000, 2510}, std::tuple{2000, 5000, 6260});
    Recovery recovery({}, 1);
    for (int peer = 0; peer < count; ++peer) recovery.lost(lost_link(true, static_cast<std::uint32_t>(peer)), 0);
    const auto times = tries(recovery, 120 * base::second);
    CHECK(longest_gap(times, 0, 30 * base::second) <= 626 * recovery_ms);
    const auto later = longest_gap(times, 40 * base::second, 120 * base::second);
    CHECK(later >= least * recovery_ms);
    CHECK(later <= most * recovery_ms);
}

TEST_CASE("a link that was lost to corrupted data rests until it is asked for", "[rails][recovery]") {
    Recovery recovery({}, 1);
    auto lost = lost_link(GENERATE(true, false));
    CHECK_FALSE(recovery.resting(lost_pair, 0));
    recovery.lost(lost, 0);
    CHECK_FALSE(recovery.resting(lost_pair, 1));  // lost for another reason
    lost.corrupted = true;
    base::Nanoseconds now = 0;
    base::Nanoseconds longest = 0;
    for (int i = 0; i < 12; ++i) {  // it comes back each time, and brings corrupted data again
        recovery.lost(lost, now);
        const auto begun = now;
        while (recovery.resting(lost_pair, now)) now += recovery_ms;
        longest = std::max(longest, now - begun);
        CHECK(now - begun >= 37 * recovery_ms);
        CHECK(recovery.back(lost_pair, now));
        CHECK_FALSE(recovery.resting(lost_pair, now));
    }
    CHECK(longest >= 3 * base::second);
    CHECK(longest <= 7 * base::second);
    recovery.lost(lost, now);
    recovery.rail_up(lost_pair.rail, now);
    CHECK_FALSE(recovery.resting(lost_pair, now));
}

TEST_CASE("only one side asks, unless its interface has come back", "[rails][recovery]") {
    Recovery recovery({}, 1);
    recovery.lost(lost_link(false), 0);
    CHECK_FALSE(recovery.take_due(60 * base::second, always));
    recovery.rail_up(0, 60 * base::second);
    CHECK_FALSE(recovery.take_due(60 * base::second, always));
    recovery.rail_up(1, 60 * base::second);
    CHECK(recovery.next_due() == 60 * base::second);
    REQUIRE(recovery.take_due(60 * base::second, always));
    recovery.failed(lost_pair, 61 * base::second);
    CHECK_FALSE(recovery.take_due(90 * base::second, always));  // once
}

TEST_CASE("a pair that was never up is tried ever less often, in the end once in a minute", "[rails][recovery]") {
    Recovery recovery({}, 1);
    recovery.missed(lost_link(), 0);
    const auto times = tries(recovery, 600 * base::second);
    CHECK(times.front() >= 3 * base::second);
    CHECK(times.size() < 24);
    CHECK(times[times.size() - 1] - times[times.size() - 2] >= 45 * base::second);
    CHECK(times[times.size() - 1] - times[times.size() - 2] <= 75 * base::second);
    CHECK(recovery.of(3).empty());  // it was not lost
}

TEST_CASE("a link that is back says for how long it was lost, and why", "[rails][recovery]") {
    Recovery recovery({}, 1);
    CHECK_FALSE(recovery.back(lost_pair, 0));  // it had not been lost
    recovery.lost(lost_link(), 5 * recovery_ms);
    const auto was = recovery.back(lost_pair, 105 * recovery_ms);
    REQUIRE(was);
    CHECK(was->since == 5 * recovery_ms);
    CHECK(was->cause == "pulled");
    CHECK_FALSE(recovery.back(lost_pair, 106 * recovery_ms));
    CHECK(recovery.of(3).empty());
    CHECK_FALSE(recovery.take_due(base::second, always));
    recovery.failed(lost_pair, 200 * recovery_ms);  // a try that came too late
    CHECK_FALSE(recovery.take_due(base::second, always));
}

TEST_CASE("each fourth try may take twice as long, each sixteenth four times, up to two seconds", "[rails][recovery]") {
    Recovery recovery({}, 1);
    auto link = lost_link();
    const bool slow = GENERATE(false, true);
    const auto limit = link.limit = slow ? 5 * base::second : 400 * recovery_ms;
    recovery.lost(link, base::second);
    std::vector<base::Nanoseconds> limits{0};  // from the first on
    for (auto now = recovery.next_due(); limits.size() <= 64; now = recovery.next_due()) {
        const auto due = recovery.take_due(now, always);
        REQUIRE(due);
        limits.push_back(due->limit);
        recovery.failed(lost_pair, now + due->limit);
    }
    for (std::size_t i = 1; i <= 64; ++i) {
        CAPTURE(i);
        const int times = i % 64 == 0 ? 8 : i % 16 == 0 ? 4 : i % 4 == 0 ? 2 : 1;
        CHECK(limits[i] == std::max(limit, std::min(limit * times, 2 * base::second)));
    }
    // The next outage begins with short ones.
    REQUIRE(recovery.back(lost_pair, 500 * base::second));
    recovery.lost(link, 520 * base::second);
    CHECK(recovery.take_due(521 * base::second, always)->limit == limit);
}

TEST_CASE("a link that comes and goes is asked for as seldom as one that stays away", "[rails][recovery]") {
    Recovery recovery({}, 1);
    base::Nanoseconds now = 0;
    int count = 0;
    for (; now < 60 * base::second; ++count) {
        recovery.lost(lost_link(), now);
        now = recovery.next_due();
        REQUIRE(recovery.take_due(now, always));
        REQUIRE(recovery.back(lost_pair, now));
        now += recovery_ms;
    }
    CHECK(count < 30);
    now += 20 * base::second;  // it stays for once: all is forgiven
    recovery.lost(lost_link(), now);
    CHECK(recovery.next_due() <= now + 63 * recovery_ms);
}

TEST_CASE("what cannot be tried wakes nobody until that changes", "[rails][recovery]") {
    Recovery recovery({}, 1);
    recovery.lost(lost_link(), 0);
    CHECK_FALSE(recovery.take_due(base::second, never));
    CHECK(recovery.next_due() == Recovery::never);
    SECTION("the peer is found again") {
        recovery.connected(2, 2 * base::second);
        CHECK(recovery.next_due() == Recovery::never);
        recovery.connected(3, 2 * base::second);
        CHECK(recovery.next_due() > 2 * base::second);
        CHECK(recovery.next_due() < 2 * base::second + 63 * recovery_ms);
    }
    SECTION("the rail is up again") {
        recovery.rail_up(1, 2 * base::second);
        CHECK(recovery.next_due() == 2 * base::second);
    }
    CHECK(recovery.take_due(3 * base::second, always));
}

TEST_CASE("links of a session that is over are forgotten", "[rails][recovery]") {
    Recovery recovery({}, 1);
    recovery.lost(lost_link(), 0);
    recovery.forget(3);
    CHECK(recovery.of(3).empty());
    CHECK(recovery.next_due() > 1000 * base::second);
}

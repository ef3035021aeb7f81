#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <vector>

#include "sched/division.hpp"

using namespace railmux;
using sched::Candidate;
using sched::Division;

namespace {

constexpr auto us = base::microsecond;
constexpr std::uint64_t lone_size = 256 * 1024;

/// One of two processes that send to and fro, over a fast rail 0 and a slow rail 1; the plan gives the slow one a tenth or so.
struct Sender {
    std::array<Candidate, 2> candidates{Candidate{.rail = 0}, Candidate{.rail = 1}};
    std::array<std::uint64_t, 2> shares{lone_size - 24 * 1024, 24 * 1024};
    std::array<std::uint64_t, 2> received{};
    bool follow = false;
    Division division{};
    std::uint32_t whole = 0;
    std::uint32_t sent = 0;

    /// Whether it goes whole; then it has arrived after `time`.
    bool send(base::Nanoseconds& now, base::Nanoseconds divided, base::Nanoseconds undivided) {
        const bool goes_whole = begin(now);
        now += goes_whole ? undivided : divided;
        end(now);
        return goes_whole;
    }
    bool begin(base::Nanoseconds now) {
        const bool goes_whole = division.begin(candidates, shares, {received, follow}, now);
        whole += goes_whole ? 1 : 0;
        ++sent;
        return goes_whole;
    }
    void end(base::Nanoseconds now) {
        division.given(lone_size);
        if (division.awaited()) division.arrived(now);
    }
    /// What the peer sends.
    void receive(bool goes_whole) {
        received[0] += goes_whole ? lone_size : shares[0];
        received[1] += goes_whole ? 0 : shares[1];
    }
};

}  // namespace

TEST_CASE("division: lone messages are divided as planned where that is faster, but for few", "[sched][division]") {
    Sender side;
    base::Nanoseconds now = us;
    std::uint32_t streak = 0, longest = 0;
    for (int i = 0; i < 20'000; ++i) {
        streak = side.send(now, 1000 * us, 1100 * us) ? streak + 1 : 0;
        longest = std::max(longest, streak);
    }
    CHECK(side.whole > 0);
    CHECK(longest <= 20);
    CHECK(side.whole * 10 < side.sent * 1);  // a trial loses a tenth, and may lose 0.5 % in all
    CHECK_FALSE(side.division.preference(lone_size).whole);
}

TEST_CASE("division: what costs twice as much is tried in few messages", "[sched][division]") {
    Sender side{.shares = {lone_size / 2, lone_size / 2}};
    base::Nanoseconds now = us;
    for (int i = 0; i < 900; ++i) side.send(now, 1000 * us, 2000 * us);
    CHECK(side.whole == 0);
    for (int i = 0; i < 20'000; ++i) side.send(now, 1000 * us, 2000 * us);
    CHECK(side.whole > 0);
    CHECK(side.whole * 200 <= side.sent);
}

TEST_CASE("division: lone messages go whole where that is faster", "[sched][division]") {
    Sender side;
    base::Nanoseconds now = us;
    for (int i = 0; i < 200; ++i) side.send(now, 1100 * us, 1000 * us);
    CHECK(side.division.preference(lone_size).whole);
    CHECK(side.division.preference(lone_size).gain_percent == 9);
    CHECK_FALSE(side.division.preference(4 * lone_size).whole);
    const auto before = side.whole;
    for (int i = 0; i < 2000; ++i) side.send(now, 1100 * us, 1000 * us);
    CHECK(side.whole - before > 1880);
    // The other way is noticed, too, when that has changed.
    for (int i = 0; i < 1000; ++i) side.send(now, 900 * us, 1000 * us);
    CHECK_FALSE(side.division.preference(lone_size).whole);
}

TEST_CASE("division: a rail that slows does not keep a whole message", "[sched][division]") {
    Sender side;
    base::Nanoseconds now = us;
    while (!side.division.preference(lone_size).whole) side.send(now, 1100 * us, 1000 * us);
    while (!side.begin(now)) {
        now += 1100 * us;
        side.end(now);
    }
    side.division.given(lone_size / 2);
    CHECK(side.division.whole(now + 1900 * us));
    CHECK_FALSE(side.division.whole(now + 2300 * us));
}

TEST_CASE("division: of several messages at once none is lone", "[sched][division]") {
    Sender side;
    base::Nanoseconds now = us;
    while (!side.division.preference(lone_size).whole) side.send(now, 1100 * us, 1000 * us);
    while (!side.begin(now)) {
        now += 1100 * us;
        side.end(now);
    }
    CHECK(side.division.untouched(lone_size));
    side.division.given(lone_size / 4);
    side.division.left(lone_size / 4 * 3);
    CHECK(side.division.whole(now));
    side.division.left(lone_size / 4 * 3 + lone_size);
    CHECK_FALSE(side.division.whole(now));
    side.division.given(2 * lone_size);
    CHECK_FALSE(side.division.awaited());
}

TEST_CASE("division: one side tries, and the other does as it sees its peer do", "[sched][division]") {
    Sender leader;
    Sender follower{.follow = true};
    base::Nanoseconds now = us;
    std::uint32_t different = 0;
    for (int i = 0; i < 2000; ++i) {
        const bool there = leader.send(now, 1100 * us, 1000 * us);
        follower.receive(there);
        const bool back = follower.send(now, 1100 * us, 1000 * us);
        leader.receive(back);
        different += there == back ? 0 : 1;
    }
    CHECK(different == 0);
    CHECK(leader.whole > 1800);

    // Not where that would be another rail.
    std::swap(follower.shares[0], follower.shares[1]);
    follower.received[0] += lone_size;
    CHECK_FALSE(follower.send(now, 1100 * us, 1000 * us));
    std::swap(follower.shares[0], follower.shares[1]);

    // Without anything from the peer it has to try by itself.
    for (int i = 0; i < 1000; ++i) follower.send(now, 900 * us, 1000 * us);
    CHECK_FALSE(follower.division.preference(lone_size).whole);
}

TEST_CASE("division: pauses of the application do not count, nor does one very late message", "[sched][division]") {
    Sender side;
    base::Nanoseconds now = us;
    for (int i = 0; i < 2000; ++i) {
        const bool late = i % 40 == 0;
        side.send(now, late ? 100'000 * us : 1100 * us, 1000 * us);
        if (i % 7 == 0) now += base::second;
    }
    CHECK(side.whole > 1000);
}

TEST_CASE("division: a rail that is thought better of for a moment gets no whole message", "[sched][division]") {
    Sender side;
    base::Nanoseconds now = us;
    while (!side.division.preference(lone_size).whole) side.send(now, 1100 * us, 1000 * us);
    std::swap(side.shares[0], side.shares[1]);
    CHECK_FALSE(side.send(now, 1100 * us, 1000 * us));
    std::swap(side.shares[0], side.shares[1]);
    CHECK(side.send(now, 1100 * us, 1000 * us));
    CHECK(side.division.rail() == 0);
    side.shares = {lone_size - 64 * 1024, 64 * 1024};
    CHECK_FALSE(side.send(now, 1100 * us, 1000 * us));
    side.shares = {lone_size - 24 * 1024, 24 * 1024};
    CHECK(side.send(now, 1100 * us, 1000 * us));
    // If it lasts all begins anew.
    std::swap(side.shares[0], side.shares[1]);
    for (int i = 0; i < 2000; ++i) {
        if (side.send(now, 1100 * us, 1000 * us)) CHECK(side.division.rail() == 1);
    }
    CHECK(side.division.preference(lone_size).whole);
}

TEST_CASE("division: there is nothing to try where one rail has all", "[sched][division]") {
    Sender side{.shares = {lone_size, 0}};
    base::Nanoseconds now = us;
    for (int i = 0; i < 1000; ++i) CHECK_FALSE(side.send(now, 1100 * us, 1000 * us));
}

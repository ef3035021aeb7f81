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

/// One of two processes that send to and fro, over a fast link 0 and a slow link 1; the plan gives the slow one a tenth or so.
struct Sender {
    std::array<std::size_t, 2> places{0, 1};
    std::array<std::uint64_t, 2> shares{lone_size - 24 * 1024, 24 * 1024};
    std::array<std::uint64_t, 2> received{};
    bool follow = false;
    Division division{};
    std::uint32_t whole = 0;
    std::uint32_t sent = 0;

    [[nodiscard]] std::uint64_t bytes() const { return shares[0] + shares[1]; }
    /// Whether it goes whole; then it has arrived after `time`.
    bool send(base::Nanoseconds& now, base::Nanoseconds divided, base::Nanoseconds undivided) {
        const bool goes_whole = begin(now);
        now += goes_whole ? undivided : divided;
        end(now);
        return goes_whole;
    }
    bool begin(base::Nanoseconds now) {
        REQUIRE(division.begins(bytes()));
        const bool goes_whole = division.begin_lone(places, shares, {received, follow}, now);
        whole += goes_whole ? 1 : 0;
        ++sent;
        return goes_whole;
    }
    void end(base::Nanoseconds now) {
        division.given(bytes());
        if (division.awaited()) division.arrived(now);
    }
    /// What the peer sends.
    void receive(bool goes_whole) {
        received[0] += goes_whole ? bytes() : shares[0];
        received[1] += goes_whole ? 0 : shares[1];
    }
    [[nodiscard]] bool prefers_whole() const { return division.preference(bytes()).has_value(); }
    /// Until it prefers whole messages, and one has begun.
    void begin_whole(base::Nanoseconds& now) {
        while (!prefers_whole()) send(now, 1100 * us, 1000 * us);
        while (!begin(now)) end(now += 1100 * us);
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
    CHECK(side.whole * 15 < side.sent);  // a trial loses a tenth, and may lose 0.5 % in all
    CHECK_FALSE(side.prefers_whole());
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
    CHECK(side.prefers_whole());
    CHECK(side.division.preference(lone_size)->gain_percent == 9);
    CHECK(side.division.preference(lone_size)->place == 0);
    CHECK_FALSE(side.division.preference(4 * lone_size));
    const auto before = side.whole;
    for (int i = 0; i < 2000; ++i) side.send(now, 1100 * us, 1000 * us);
    CHECK(side.whole - before > 1880);
    // The other way is noticed, too, when that has changed.
    for (int i = 0; i < 1000; ++i) side.send(now, 900 * us, 1000 * us);
    CHECK_FALSE(side.prefers_whole());
}

TEST_CASE("division: a rail that slows does not keep a whole message", "[sched][division]") {
    Sender side;
    base::Nanoseconds now = us;
    side.begin_whole(now);
    side.division.given(lone_size / 2);
    CHECK(side.division.whole(now + 3900 * us));
    CHECK(side.division.patience() <= now + 4400 * us);
    CHECK_FALSE(side.division.whole(now + 4400 * us));
}

TEST_CASE("division: of several messages at once none is lone", "[sched][division]") {
    Sender side;
    base::Nanoseconds now = us;
    side.begin_whole(now);
    CHECK_FALSE(side.division.begins(lone_size));
    side.division.given(lone_size / 4);
    CHECK_FALSE(side.division.begins(lone_size / 4 * 3));
    CHECK(side.division.whole(now));
    CHECK_FALSE(side.division.begins(lone_size / 4 * 3 + lone_size));
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
    CHECK(leader.whole > 1700);

    // Not where that would be another rail.
    std::swap(follower.shares[0], follower.shares[1]);
    follower.received[0] += lone_size;
    const auto before = follower.whole;
    follower.send(now, 1100 * us, 1000 * us);
    CHECK(follower.whole == before);
    std::swap(follower.shares[0], follower.shares[1]);

    // Without anything from the peer it has to try by itself.
    for (int i = 0; i < 1000; ++i) follower.send(now, 900 * us, 1000 * us);
    CHECK_FALSE(follower.prefers_whole());
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
    while (!side.prefers_whole()) side.send(now, 1100 * us, 1000 * us);
    std::swap(side.shares[0], side.shares[1]);
    CHECK_FALSE(side.send(now, 1100 * us, 1000 * us));
    std::swap(side.shares[0], side.shares[1]);
    CHECK(side.send(now, 1100 * us, 1000 * us));
    CHECK(side.division.place() == 0);
    side.shares = {lone_size - 96 * 1024, 96 * 1024};
    CHECK_FALSE(side.send(now, 1100 * us, 1000 * us));
    side.shares = {lone_size - 24 * 1024, 24 * 1024};
    CHECK(side.send(now, 1100 * us, 1000 * us));
    // If it lasts all begins anew.
    std::swap(side.shares[0], side.shares[1]);
    for (int i = 0; i < 2000; ++i) {
        if (side.send(now, 1100 * us, 1000 * us)) CHECK(side.division.place() == 1);
    }
    CHECK(side.prefers_whole());
}

TEST_CASE("division: there is nothing to try where one rail has all", "[sched][division]") {
    Sender side{.shares = {lone_size, 0}};
    base::Nanoseconds now = us;
    for (int i = 0; i < 1000; ++i) CHECK_FALSE(side.send(now, 1100 * us, 1000 * us));
}

TEST_CASE("division: a peer that has nothing to divide is no example", "[sched][division]") {
    Sender follower{.shares = {lone_size / 2, lone_size / 2}, .follow = true};
    base::Nanoseconds now = us;
    for (int i = 0; i < 900; ++i) {
        follower.received[0] += 64 * 1024;  // over one link always
        follower.send(now, 1000 * us, 2000 * us);
    }
    CHECK(follower.whole == 0);
}

TEST_CASE("division: what the peer does is not done against what was seen", "[sched][division]") {
    Sender follower{.follow = true};
    base::Nanoseconds now = us;
    for (int i = 0; i < 100; ++i) {
        follower.receive(false);
        follower.send(now, 1000 * us, 1500 * us);
    }
    CHECK(follower.whole == 0);
    for (int i = 0; i < 1000; ++i) {
        follower.receive(true);
        follower.send(now, 1000 * us, 1500 * us);
    }
    CHECK(follower.whole > 0);
    CHECK(follower.whole < 200);
}

TEST_CASE("division: a trial ends where messages come too rarely to be compared", "[sched][division]") {
    Sender side{.shares = {lone_size / 2, lone_size / 2}};
    base::Nanoseconds now = us;
    while (side.whole == 0) side.send(now, 1000 * us, 2000 * us);
    for (int i = 0; i < 2000; ++i) {
        now += base::second;
        side.send(now, 1000 * us, 2000 * us);
    }
    CHECK(side.whole <= 100);
}

TEST_CASE("division: what comes between two messages of a size is not counted with them", "[sched][division]") {
    Sender large;
    base::Nanoseconds now = us;
    // Messages of half the size go through the same object, and what these take is none of the others' doing.
    for (int i = 0; i < 2000; ++i) {
        large.send(now, 1000 * us, 1100 * us);
        large.shares = {lone_size / 4, lone_size / 4};
        large.send(now, 9000 * us, 1000 * us);
        large.shares = {lone_size - 24 * 1024, 24 * 1024};
    }
    CHECK_FALSE(large.prefers_whole());
}

TEST_CASE("division: the rest of a message is no message", "[sched][division]") {
    Sender side;
    base::Nanoseconds now = us;
    REQUIRE(side.division.begins(lone_size));
    side.division.given(lone_size / 2);
    CHECK_FALSE(side.division.begins(lone_size / 2));
    side.division.given(lone_size / 2);
    CHECK(side.division.begins(lone_size));
    // One of which a part is gone is not lone.
    side.division.given(lone_size);
    side.begin_whole(now);
    CHECK_FALSE(side.division.begins(lone_size / 2));
    CHECK_FALSE(side.division.whole(now));
}

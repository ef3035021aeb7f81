#include "rails/spreading.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstdint>

using namespace railmux::rails;
namespace base = railmux::base;
namespace sched = railmux::sched;
using sched::Spread;

namespace {

/// One of two that send a message of 4 KiB to and fro, over two rails, and follows what the other one tries.
struct Follower {
    FramePool pool;
    Session session{pool};
    Spreading spreading;
    std::array<sched::Candidate, 2> candidates{sched::Candidate{.rail = 0}, sched::Candidate{.rail = 1}};
    std::array<sched::Pace, 2> paces{};
    base::Nanoseconds now = base::millisecond;

    Follower() {
        for (int i = 0; i < 1000; ++i) one();
        REQUIRE(spreading.lone());
    }
    void one(Spread there = Spread::predicted) {
        Frame* frame = pool.take(FrameHeader::size);
        frame->type = FrameType::eager;
        frame->bytes = FrameHeader::size;
        session.enter(*frame, {});
        spreading.went(4096, 1, session, candidates, 0, true, now);
        REQUIRE(session.hear(session.numbered()) == Session::Hearing::news);
        spreading.came_through(session.heard(), now);
        spreading.heavy_came(now);
        REQUIRE(session.acknowledged(session.numbered(), {}, [&](Frame& each) { pool.give(&each); }));
        ++candidates[0].heavy_received;
        now += 20 * base::microsecond;
        spreading.heard({.flags = static_cast<std::uint8_t>(static_cast<unsigned>(there) << frame_flag::spread_shift)});
        spreading.tell(candidates, paces, now);
    }
};

}  // namespace

TEST_CASE("spreading: who follows takes turns as soon as rates are known, and by these", "[rails][spread]") {
    Follower side;
    side.candidates[0].shown = 8000;
    side.one(Spread::by_rate);
    CHECK(side.candidates[0].spread == Spread::by_rate);
    CHECK_FALSE(sched::turns_known(side.candidates));
    side.candidates[1].shown = 80'000;  // the peer has said so
    side.one(Spread::by_rate);
    REQUIRE(sched::turns_known(side.candidates));
    CHECK(side.candidates[0].turn == 8000);
    CHECK(side.candidates[1].turn == 89'000);  // an eighth slower than it is slower by
    // What turns show is no fair measure.
    side.candidates[1].shown = 20'000;
    side.one(Spread::by_rate);
    CHECK(side.candidates[1].turn == 89'000);
    side.one(Spread::in_turn);
    side.one(Spread::by_rate);  // after a trial
    CHECK(side.candidates[1].turn == 89'000);
    side.one(Spread::single);
    side.now += base::second / 2;  // nothing goes meanwhile
    side.one(Spread::by_rate);
    CHECK(side.candidates[1].turn == 89'000);
    for (int i = 0; i < 10'000; ++i) side.one(Spread::predicted);
    side.one(Spread::by_rate);
    CHECK(side.candidates[1].turn == 21'500);
}

TEST_CASE("spreading: light frames are told of the link of heavy ones for a moment", "[rails][spread]") {
    Follower side;
    CHECK(side.candidates[0].with_heavy);
    CHECK(side.candidates[1].with_heavy);
    CHECK_FALSE(side.candidates[0].last_heavy);
    CHECK(side.candidates[1].last_heavy);
    side.now += 2 * base::millisecond;
    side.spreading.tell(side.candidates, side.paces, side.now);
    CHECK_FALSE(side.candidates[0].with_heavy);
    CHECK_FALSE(side.candidates[1].with_heavy);
    side.one();
    CHECK(side.candidates[0].with_heavy);
}

TEST_CASE("spreading: where links are others now, all go as predicted", "[rails][spread]") {
    Follower side;
    side.one(Spread::single);
    REQUIRE(side.candidates[0].spread == Spread::single);
    side.spreading = {};
    side.spreading.tell(side.candidates, side.paces, side.now);
    CHECK(side.candidates[0].spread == Spread::predicted);
    CHECK(side.candidates[1].spread == Spread::predicted);
}

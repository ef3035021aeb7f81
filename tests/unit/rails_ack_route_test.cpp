// Which link an acknowledgement takes.
#include <catch2/catch.hpp>

#include <array>

#include "rails/ack_route.hpp"
#include "rails/inflow.hpp"
#include "unit/rails_made.hpp"

using namespace railmux;
using rails::AckRoute;
using rails::Inflow;

namespace {

sched::Candidate link_of(base::Nanoseconds latency, base::Nanoseconds per_byte) {
    sched::Candidate candidate;
    candidate.cost.latency = sched::to_ticks(latency);
    candidate.cost.per_byte = sched::to_ticks(per_byte);
    return candidate;
}

constexpr auto none = rails::Conversation::none;

using rails::test::made_traits;

/// A peer with a fast, a slow and a slower link, and acknowledgements that may be kept back for 100 us.
struct Route {
    rails::test::Made made{{made_traits("eth0"), made_traits("eth1"), made_traits("eth2")}};
    std::uint32_t peer = made.add_peer();
    rails::Link& fast = made.add_link(peer, 0, 1);
    rails::Link& slow = made.add_link(peer, 1, 8);
    rails::Link& slower = made.add_link(peer, 2, 80);
    AckRoute route{*made.policy, made.ledger, made.links, 100 * base::microsecond};

    Route() { made.talk(peer).last_link = fast.slot; }
    /// A frame of so many bytes has just been handed to the link's rail.
    void load(rails::Link& link, std::uint64_t bytes) {
        auto& frame = *made.pool.take(rails::FrameHeader::size);
        frame.type = rails::FrameType::fin;
        frame.bytes = rails::FrameHeader::size;
        frame.piece_count = 1;
        frame.payload = static_cast<std::uint32_t>(bytes);
        frame.link = link.slot;
        frame.sent = made.now;
        made.talk(peer).session.enter(frame, {});
        made.ledger.charge(link, frame, made.now);
    }
    rails::Link& next() { return route.next(made.talk(peer), made.now); }
};

}  // namespace

TEST_CASE("acknowledgements take the quick link, and where data comes in the wide one", "[rails][acks]") {
    // 400 Mbit/s and 1 Gbit/s, whose latencies nobody knows to ten microseconds under load.
    const std::array uneven{link_of(33'000, 20), link_of(39'000, 8)};
    CHECK(AckRoute::best(uneven, false, none) == 0);
    CHECK(AckRoute::best(uneven, true, none) == 1);

    // What is farther than the data takes stays farther.
    const std::array far{link_of(20'000, 8), link_of(1'000'000, 1)};
    CHECK(AckRoute::best(far, true, none) == 0);

    std::array spare{link_of(33'000, 8), link_of(39'000, 20)};
    spare[0].spare = true;
    CHECK(AckRoute::best(spare, false, none) == 1);
    CHECK(AckRoute::best(spare, true, none) == 1);
}

TEST_CASE("of links about as quick, acknowledgements take the one that messages come over", "[rails][acks]") {
    std::array even{link_of(5'000, 8), link_of(4'000, 80)};
    CHECK(AckRoute::best(even, false, none) == 1);
    CHECK(AckRoute::best(even, false, 0) == 0);
    CHECK(AckRoute::best(even, false, 1) == 1);
    CHECK(AckRoute::best(even, true, 1) == 0);  // large messages come over all of them
    even[0].cost.latency = sched::to_ticks(20 * base::microsecond);
    CHECK(AckRoute::best(even, false, 0) == 1);
}

TEST_CASE("an acknowledgement for which too much waits goes where it arrives first", "[rails][acks]") {
    Route links;
    CHECK(&links.next() == &links.fast);
    links.load(links.fast, 64 * 1024);  // 66 us, of the 100 for which it may be kept back
    CHECK(&links.next() == &links.fast);
    links.load(links.fast, 64 * 1024);  // 131 us
    CHECK(&links.next() == &links.slow);
    links.load(links.slow, 8 * 1024);  // 66 us there, 131 on the fast one
    CHECK(&links.next() == &links.slower);
    links.load(links.slower, 8 * 1024);  // 655 us, for no more bytes than on the slow one
    CHECK(&links.next() == &links.slow);
    links.load(links.slow, 16 * 1024);  // 197 us
    CHECK(&links.next() == &links.fast);
}

TEST_CASE("an acknowledgement takes no spare link while there is another", "[rails][acks]") {
    Route links;
    auto& candidates = links.made.talk(links.peer).candidates;
    candidates[1].spare = candidates[2].spare = true;
    links.load(links.fast, 1024 * 1024);
    CHECK(&links.next() == &links.fast);
}

TEST_CASE("a peer sends data if more than small messages came of late", "[rails][acks]") {
    Inflow inflow;
    std::uint64_t total = 0;
    for (int i = 0; i < 100; ++i) inflow.noted(total += 800);
    CHECK_FALSE(inflow.data());
    inflow.noted(total += 64 * 1024);
    for (int i = 0; i < 3; ++i) {  // the next acknowledgements are for announcements
        inflow.noted(total);
        CHECK(inflow.data());
    }
    for (int i = 0; i < 3; ++i) inflow.noted(total);
    CHECK_FALSE(inflow.data());
    inflow.noted(total - 1000);  // a link has gone
    CHECK_FALSE(inflow.data());
}

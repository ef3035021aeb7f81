// Which link an acknowledgement takes.
#include <catch2/catch.hpp>

#include <array>

#include "rails/ack_route.hpp"
#include "rails/inflow.hpp"

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

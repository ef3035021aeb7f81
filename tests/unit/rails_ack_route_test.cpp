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

}  // namespace

TEST_CASE("acknowledgements take the quick link, and where data comes in the wide one", "[rails][acks]") {
    // 400 Mbit/s and 1 Gbit/s, whose latencies nobody knows to ten microseconds under load.
    const std::array uneven{link_of(33'000, 20), link_of(39'000, 8)};
    CHECK(AckRoute::best(uneven, false) == 0);
    CHECK(AckRoute::best(uneven, true) == 1);

    // What is farther than the data takes stays farther.
    const std::array far{link_of(20'000, 8), link_of(1'000'000, 1)};
    CHECK(AckRoute::best(far, true) == 0);

    std::array spare{link_of(33'000, 8), link_of(39'000, 20)};
    spare[0].spare = true;
    CHECK(AckRoute::best(spare, false) == 1);
    CHECK(AckRoute::best(spare, true) == 1);
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

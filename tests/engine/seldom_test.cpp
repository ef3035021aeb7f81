// Applications that compute, and seldom look at the rails.
#include <catch2/catch.hpp>

#include <chrono>
#include <vector>

#include "engine/pair.hpp"

using namespace railmux;
using test::Pair;
using test::pattern;
using test::two_rails;

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

}  // namespace

TEST_CASE("who only sends, and seldom, hears of what has come within some milliseconds", "[engine][shm]") {
    const auto* const rails = GENERATE("tcp:*", "shm:node");
    auto config = two_rails();
    Pair pair(config.set("rails", rails));
    const auto data = pattern(8);
    std::vector<std::byte> into(8);
    auto receive = pair.b.irecv(pair.to_a, 1, into);
    auto first = pair.a.isend(pair.to_b, 1, data);
    CHECK(pair.finish(pair.b, receive).ok());  // there is a link now
    CHECK(pair.finish(pair.a, first).ok());
    bool called = false;
    auto answer = pair.a.irecv(pair.to_b, 2, into, [&](const Status&) { called = true; });
    pair.b.send(pair.to_a, 2, data);
    unsigned sent = 0;
    for (auto next = SteadyClock::now(); !called && sent < 500; ++sent) {
        pair.a.send(pair.to_b, 1, data);
        for (next += 100us; SteadyClock::now() < next;) pair.b.progress();  // a computes
    }
    CAPTURE(rails);
    CHECK(called);  // as many sends in one go would have been over before
    CHECK(pair.a.wait(answer).ok());
}

TEST_CASE("who looks once a millisecond lets a peer in, and hears it, within some of these looks", "[engine][shm]") {
    const auto* const rails = GENERATE("tcp:*", "shm:node");
    auto config = two_rails();
    Pair pair(config.set("rails", rails));
    const auto data = pattern(8);
    std::vector<std::byte> into(8);
    auto send = pair.a.isend(pair.to_b, 1, data);
    auto receive = pair.b.irecv(pair.to_a, 1, into);
    unsigned looks = 0;
    for (auto next = SteadyClock::now(); !pair.b.test(receive) && looks < 1000; ++looks) {
        for (next += 1ms; SteadyClock::now() < next;) pair.a.progress();  // b computes
    }
    CAPTURE(rails);
    CHECK(looks < 50);
    CHECK(pair.finish(pair.a, send).ok());
}

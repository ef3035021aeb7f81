// Applications that compute, and seldom look at the rails.
#include <catch2/catch.hpp>

#include <algorithm>
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

/// A message of a's to b has begun, over these rails.
struct Begun {
    explicit Begun(const char* rails)
        : pair(two_rails().set("rails", rails)),
          send(pair.a.isend(pair.to_b, 1, data)),
          receive(pair.b.irecv(pair.to_a, 1, into)) {}

    std::vector<std::byte> data = pattern(8);
    std::vector<std::byte> into = pattern(8);
    Pair pair;
    Request send;
    Request receive;
};

}  // namespace

TEST_CASE("who only sends, and seldom, hears of what has come within some milliseconds", "[engine][shm]") {
    const auto* const rails = GENERATE("tcp:*", "shm:node");
    Begun begun(rails);
    auto& pair = begun.pair;
    CHECK(pair.finish(pair.b, begun.receive).ok());  // there is a link now
    CHECK(pair.finish(pair.a, begun.send).ok());
    bool called = false;
    auto answer = pair.a.irecv(pair.to_b, 2, begun.into, [&](const Status&) { called = true; });
    pair.b.send(pair.to_a, 2, begun.data);
    unsigned sent = 0;
    for (auto next = SteadyClock::now(); !called && sent < 500; ++sent) {
        pair.a.send(pair.to_b, 1, begun.data);
        for (next += 100us; SteadyClock::now() < next;) pair.b.progress();  // a computes
    }
    CAPTURE(rails);
    CHECK(called);  // 500 are too few bytes for a look (Engine::bytes_per_look)
    CHECK(pair.a.wait(answer).ok());
}

TEST_CASE("who looks once a millisecond lets a peer in, and hears it, within some of these looks", "[engine][shm]") {
    const auto* const rails = GENERATE("tcp:*", "shm:node");
    Begun begun(rails);
    auto& pair = begun.pair;
    unsigned looks = 0;
    for (auto next = SteadyClock::now(); !pair.b.test(begun.receive) && looks < 1000; ++looks) {
        next = std::max(next, SteadyClock::now()) + 1ms;
        do pair.a.progress();  // b computes
        while (SteadyClock::now() < next);
    }
    CAPTURE(rails);
    CHECK(looks < 50);
    CHECK(pair.finish(pair.a, begun.send).ok());
}

// Those who knock: without the key, with somebody else's words, or without an end.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>

#include "unit/rails_world.hpp"

using namespace rails_world;  // NOLINT: the tests are about it

TEST_CASE("replayed hellos do not drive out one that waits for its proof", "[rails][sessions]") {
    Couple pair(1);
    auto& b = *pair.b;
    pair.talk();
    Hello hello{.version = wire_version,
                .epoch = 0,
                .rail = 0,
                .from = {.instance = 30, .rank = no_rank},
                .to = 20,
                .nonce = 1,
                .job = key.job};
    const auto stranger = pair.world.fabric.open("x", "eth0");
    static_cast<void>(stranger->connect(b.rail_address(), encode_hello(key, hello)));
    // Other hellos of that process, captured earlier, each again and again.
    for (int i = 0; i < 100; ++i) {
        hello.nonce = 2 + static_cast<std::uint64_t>(i % 3);
        static_cast<void>(stranger->connect(b.rail_address(), encode_hello(key, hello)));
    }
    std::array<transports::Event, 8> events;
    std::size_t up = 0, down = 0;
    const auto end = World::now() + base::second;
    pair.until([&] {
        const auto count = stranger->poll(events);
        for (const auto& event : std::span(events).first(count)) {
            up += event.kind == transports::EventKind::link_up;
            down += event.kind == transports::EventKind::link_down;
        }
        return World::now() >= end;
    });
    CHECK(up == 4);
    CHECK(down == 97);
}

TEST_CASE("a hello without a proof changes nothing", "[rails][sessions]") {
    Couple pair(1);
    auto& b = *pair.b;
    pair.talk();
    Hello hello{.version = wire_version,
                .epoch = 0,
                .rail = 0,
                .from = {.instance = 10, .rank = 0},
                .to = 20,
                .nonce = 1,
                .job = key.job};
    SECTION("a replay") {}
    SECTION("of a later session") { hello.epoch = 1; }
    SECTION("of another instance") { hello.from.instance = 30; }
    SECTION("of somebody unknown") { hello.from = {.instance = 30, .rank = no_rank}; }
    const auto links = b.manager.survey().links(0);
    const auto known = b.manager.peers().size();
    const auto replayer = pair.world.fabric.open("x", "eth0");
    for (int i = 0; i < 3; ++i) static_cast<void>(replayer->connect(b.rail_address(), encode_hello(key, hello)));
    const auto end = World::now() + 5 * base::second;
    std::array<transports::Event, 8> events;
    std::size_t answers = 0;
    std::size_t soon = 0;
    bool kept = true;
    pair.until([&] {
        answers += replayer->poll(events);
        if (World::now() < end - 4 * base::second) soon = answers;
        kept = kept && b.manager.survey().links(0) == links;
        return World::now() >= end;
    });
    CHECK(kept);
    CHECK(soon == 3);     // accepted; and refused, as the same hello waits already
    CHECK(answers == 4);  // ... and closed, as no proof came
    CHECK(b.peer(0).instance == 10);
    CHECK(b.peer(0).epoch == 0);
    CHECK(b.manager.peers().size() == known);
    CHECK(b.gone.empty());
    CHECK(pair.a.links_lost(1) == 0);
    pair.talk();
}

TEST_CASE("who does not know the key is told why he is refused, and nothing else", "[rails][sessions]") {
    Couple pair(1);
    pair.talk();
    Hello hello{.version = wire_version,
                .rail = 0,
                .from = {.instance = 30, .rank = no_rank},
                .to = 20,
                .nonce = 1,
                .job = key.job};
    auto other = key;
    const auto verdict = GENERATE(Verdict::wrong_key, Verdict::wrong_job, Verdict::wrong_version);
    if (verdict == Verdict::wrong_key) other.key = "guessed";
    if (verdict == Verdict::wrong_job) ++hello.job;
    if (verdict == Verdict::wrong_version) ++hello.version;
    const auto stranger = pair.world.fabric.open("x", "eth0");
    static_cast<void>(stranger->connect(pair.b->rail_address(), encode_hello(other, hello)));
    std::array<transports::Event, 8> events;
    std::optional<Reply> reply;
    Reply::Bytes bytes{};
    pair.until([&] {
        if (stranger->poll(events) == 0) return false;
        reply = parse_reply(events[0].data);
        if (reply) std::copy(events[0].data.begin(), events[0].data.end(), bytes.begin());
        return true;
    });
    REQUIRE(reply);
    CHECK(reply->verdict == verdict);
    CHECK(bytes == bare_refusal(verdict));
    CHECK(reply->from.instance == 0);
}

TEST_CASE("links that wait for their proof are few, and none waits for long", "[rails][sessions]") {
    constexpr int hellos = 1000;
    Couple pair(1, {.pair_limit = 3600 * base::second});
    pair.talk();
    const auto flooder = pair.world.fabric.open("x", "eth0");
    std::array<transports::Event, 64> events;
    std::size_t up = 0;
    std::size_t down = 0;
    const auto look = [&] {
        const auto count = flooder->poll(events);
        for (std::size_t i = 0; i < count; ++i) {
            up += events[i].kind == transports::EventKind::link_up ? 1U : 0U;
            down += events[i].kind == transports::EventKind::link_down ? 1U : 0U;
        }
    };
    for (int i = 0; i < hellos; ++i) {
        const Hello hello{.version = wire_version,
                          .rail = 0,
                          .from = {.instance = 1000U + static_cast<unsigned>(i), .rank = no_rank},
                          .to = 20,
                          .nonce = 1,
                          .job = key.job};
        static_cast<void>(flooder->connect(pair.b->rail_address(), encode_hello(key, hello)));
    }
    pair.until([&] {
        look();
        return up == hellos && down >= hellos - 512;
    });
    CHECK(down == hellos - 512);
    CHECK(pair.b->manager.survey().links(0).size() == 1);
    pair.talk();
    const auto begun = World::now();
    pair.until([&] {
        look();
        return down == hellos;
    });
    CHECK(World::now() - begun < 5 * base::second);
    pair.talk();
    CHECK(pair.b->links_lost(0) == 0);
}

// --- Ends of processes, as told by the job ---------------------------------------------------------------------------

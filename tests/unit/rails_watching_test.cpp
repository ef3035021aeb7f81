// Links that nothing comes over any more: which are lost, and when.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>

#include "unit/rails_world.hpp"

using namespace rails_world;  // NOLINT: the tests are about it

TEST_CASE("a link that falls silent is lost: soon under load, within a second when idle",
          "[rails][sessions][silence]") {
    Couple pair(2, {}, GENERATE(10, 30), World::Network::confirming);
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    run(pair.world, {&pair.a, pair.b.get()}, 5 * base::second);
    const bool load = GENERATE(true, false);
    pair.world.fabric.cut("a/eth0", "b/eth0", sim::Cut::silent);  // the one that small messages take
    const auto cut = World::now();
    if (load) {
        pair.talk();
        CHECK(World::now() - cut < 150 * base::millisecond);
    }
    pair.until([&] { return pair.both_have(1); });
    CHECK(World::now() - cut < base::second);
    // Whichever side noticed it first has told the other.
    const auto& causes = std::array{pair.a.news.front().cause, pair.b->news.front().cause};
    CHECK(
        std::ranges::any_of(causes, [](const auto& cause) { return cause.starts_with("nothing acknowledged for "); }));
    run(pair.world, {&pair.a, pair.b.get()}, 2 * base::second);
    pair.talk();
    pair.world.fabric.restore("a/eth0", "b/eth0");
    const auto restored = World::now();
    pair.until([&] { return pair.both_have(2); });
    CHECK(World::now() - restored < base::second);
    pair.talk();
}

TEST_CASE("the only link of a peer is lost within a second", "[rails][sessions][silence]") {
    Couple pair(1, {}, 10, World::Network::confirming);
    pair.talk();
    run(pair.world, {&pair.a, pair.b.get()}, 5 * base::second);
    pair.world.cut(sim::Cut::silent);
    const auto cut = World::now();
    pair.until([&] { return pair.both_have(0); });
    CHECK(World::now() - cut > 500 * base::millisecond);
    CHECK(World::now() - cut < 1100 * base::millisecond);
    pair.world.restore();
    pair.talk();
}

TEST_CASE("a peer that computes is not silent", "[rails][sessions][silence]") {
    Couple pair(2, {}, 10, World::Network::confirming);
    pair.talk();
    pair.a.say(1, "at last");
    run(pair.world, {&pair.a}, 60 * base::second);
    CHECK(pair.a.links_lost(1) == 0);
    pair.talk();
    CHECK(pair.a.news.empty());
}

TEST_CASE("over a network that tells nothing, a link is lost when only others are heard of the peer",
          "[rails][sessions][silence]") {
    Couple pair(2, {}, GENERATE(10, 30), World::Network::mute);
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    run(pair.world, {&pair.a, pair.b.get()}, 300 * base::second);  // idle
    CHECK(pair.both_have(2));
    CHECK(pair.a.news.empty());
    const auto cut = World::now();
    pair.world.fabric.cut("a/eth0", "b/eth0", sim::Cut::silent);
    run(pair.world, {&pair.a, pair.b.get()}, 25 * base::second);
    CHECK(pair.both_have(2));
    pair.until([&] { return pair.both_have(1); });
    CHECK(World::now() - cut < 40 * base::second);
    pair.talk();
    pair.world.restore();
    pair.until([&] { return pair.both_have(2); });
    pair.talk();
}

TEST_CASE("over a network that tells nothing, a peer may compute for a minute, but not for ever",
          "[rails][sessions][silence]") {
    Couple pair(2, {}, 10, World::Network::mute);
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    run(pair.world, {&pair.a}, 100 * base::second);
    CHECK(pair.a.links_lost(1) == 0);
    pair.talk();
    run(pair.world, {&pair.a, pair.b.get()}, 10 * base::second);
    CHECK(pair.a.links_lost(1) == 0);
    CHECK(pair.b->links_lost(0) == 0);
    run(pair.world, {&pair.a}, 150 * base::second);  // it was killed
    CHECK_FALSE(pair.a.manager.connected(1));
    CHECK(pair.a.gone == Codes{ErrorCode::unreachable});
}

TEST_CASE("over a network that tells nothing, who looks seldom loses nothing", "[rails][sessions][silence]") {
    Couple pair(2, {}, 10, World::Network::mute);
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    for (int i = 0; i < 60; ++i) {
        run(pair.world, {&pair.a}, 5 * base::second);
        pair.b->say(0, "here I am");  // over the faster link
        run(pair.world, {&pair.a, pair.b.get()}, base::millisecond);
    }
    CHECK(pair.a.links_lost(1) == 0);
    CHECK(pair.b->links_lost(0) == 0);
}

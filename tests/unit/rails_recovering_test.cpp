// Links and rails that are lost, come back, or are new.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>

#include "unit/rails_world.hpp"

using namespace rails_world;  // NOLINT: the tests are about it

TEST_CASE("a lost link comes back by itself, and both sides tell", "[rails][sessions][recovery]") {
    Couple pair(2, {}, GENERATE(10, 30));
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    pair.world.fabric.cut("a/eth1", "b/eth1", sim::Cut::loud);
    pair.until([&] { return pair.both_have(1); });
    pair.talk();
    run(pair.world, {&pair.a, pair.b.get()}, 3 * base::second);
    pair.talk();
    CHECK(pair.both_have(1));
    pair.world.fabric.restore("a/eth1", "b/eth1");
    const auto restored = World::now();
    pair.until([&] { return pair.both_have(2); });
    CHECK(World::now() - restored < base::second);
    pair.talk();
    CHECK(pair.a.links_lost(1) == 1);
    CHECK(pair.b->links_lost(0) == 1);
    for (const auto* side : {&pair.a, pair.b.get()}) {
        REQUIRE(side->news.size() == 2);
        CHECK_FALSE(side->news[0].up);
        CHECK(side->news[1].up);
        CHECK(side->news[1].rail == 1);
        CHECK(side->news[1].cause == "the path is cut");
        CHECK(side->news[1].down > 3 * base::second);
        CHECK(side->news[1].down < 4 * base::second);
        CHECK(side->gone.empty());
    }
}

TEST_CASE("what is answered when the end of the link has been polled already is not lost",
          "[rails][sessions][recovery]") {
    Couple pair(1);
    pair.talk();
    pair.a.on_heard = [&] { pair.a.say(1, "answer"); };  // goes out in the middle of what one look brought
    pair.b->say(0, "question");
    run(pair.world, {pair.b.get()}, 10 * base::millisecond);
    pair.world.cut(sim::Cut::loud);
    pair.until([&] { return !pair.a.manager.connected(1); });
    CHECK(Couple::heard(pair.a, "question"));
    pair.world.restore();
    pair.until([&] { return Couple::heard(*pair.b, "answer"); });
}

TEST_CASE("a put that is lost again and again behind which the window is full goes through in the end",
          "[rails][sessions][recovery]") {
    Couple pair(1, {.checksum = true});  // puts are not repeated before it is settled that the link is over
    pair.talk();
    pair.world.cut(sim::Cut::loud);
    pair.until([&] { return !pair.a.manager.connected(1); });
    std::array<std::byte, 64> bytes{};
    const std::array keys{BulkTarget::Key{.rail = 0, .key = {.id = 1, .secret = 1}}};  // nothing: it is discarded
    const BulkTarget target{.keys = keys};
    const auto frames = Session::window + 100;
    for (std::uint32_t i = 0; i < frames; ++i) {
        if (i > 0) {
            pair.a.say(1, std::to_string(i));
            continue;
        }
        Frame* put = pair.a.manager.pool().take(FrameHeader::size);
        put->type = FrameType::fin;
        put->bytes = FrameHeader::size;
        put->payload = bytes.size();
        put->pieces[put->piece_count++] = {bytes.data(), bytes.size(), 0};
        put->target = &target;
        pair.a.manager.send(1, put, World::now());
    }
    const auto resent = [&] { return pair.a.peer(1).traffic[0].resent_frames; };
    for (int losses = 0; losses < 200; ++losses) {
        const auto before = resent();
        pair.world.restore();
        pair.until([&] { return pair.both_have(1) && (losses == 0 || resent() > before); });
        pair.world.cut(sim::Cut::loud);  // it is on its way
        pair.until([&] { return pair.both_have(0); });
    }
    pair.world.restore();
    pair.until([&] { return Couple::heard(*pair.b, std::to_string(frames - 1)); });
}

TEST_CASE("who asks again and again whether links are over, and does not take the answers, is told so",
          "[rails][sessions][recovery]") {
    Couple pair(1);
    pair.talk();
    pair.world.fabric.set_timing("b/eth0", sim::simple_timing(2000, 300, 300, base::millisecond, 1.0));
    constexpr std::size_t links = 64;  // in a question
    constexpr std::size_t size = FrameHeader::size + links * sizeof(std::uint64_t);
    for (int i = 0; i < 1000; ++i) {
        Frame* question = pair.a.manager.pool().take(size);
        question->type = FrameType::settle;
        question->bytes = size;
        std::fill_n(question->data() + FrameHeader::size, size - FrameHeader::size, std::byte{1});
        pair.a.manager.send(1, question, World::now());
    }
    pair.until([&] { return !pair.b->news.empty(); });
    CHECK(pair.b->news.front().cause == "it does not take the answers that it asks for");
}

TEST_CASE("a rail that is up again is used at once, whichever side's it is", "[rails][sessions][recovery]") {
    Couple pair(2, {}, GENERATE(10, 30));
    const std::string rail = GENERATE("a/eth1", "b/eth1", "a/eth0");
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    pair.world.fabric.rail_down(rail, "no carrier");
    pair.until([&] { return pair.both_have(1); });
    run(pair.world, {&pair.a, pair.b.get()}, 100 * base::second);  // by now it is seldom asked for
    pair.world.fabric.restore_rail(rail);
    const auto restored = World::now();
    pair.until([&] { return pair.both_have(2); });
    CHECK(World::now() - restored < 20 * base::millisecond);
    auto& owner = rail[0] == 'a' ? pair.a : *pair.b;
    const auto whole = std::ranges::count(owner.news, no_peer, &RailNews::peer);
    CHECK(whole == 2);  // down, and up
    pair.talk();
}

TEST_CASE("where each rail reaches all of the other side, each has a link in the end", "[rails][sessions]") {
    const int rails = GENERATE(2, 3, 8, 11);
    Couple pair(rails, {}, GENERATE(10, 30), World::Network::flat);
    // However many of the first tried lead nowhere.
    const bool some_dead = GENERATE(false, true);
    for (int i = 0; some_dead && i < std::min(rails, 6); ++i)
        for (int j = 0; j < std::min(rails, 6); ++j)
            if ((i + j) % 2 == 0)
                pair.world.fabric.cut(fmt::format("a/eth{}", i), fmt::format("b/eth{}", j), sim::Cut::silent);
    pair.a.say(1, "a asks");
    pair.until([&] {
        const auto all = static_cast<std::size_t>(rails);
        return pair.a.rails_to(1) == all && pair.b->rails_to(0) == all;
    });
    CHECK(pair.a.manager.survey().links(1).size() < 2 * static_cast<std::size_t>(rails));
}

TEST_CASE("of pairs that never came up only those come up that are needed", "[rails][sessions][recovery]") {
    constexpr int rails = 8;
    Couple pair(rails, {}, 10, World::Network::flat);
    const auto of_first = [&] {
        const auto& survey = pair.a.manager.survey();
        return std::ranges::count_if(survey.links(1), [&](auto link) { return survey.rail_of(link) == 0; });
    };
    for (int j = 0; j < rails; ++j) pair.world.fabric.cut("a/eth0", fmt::format("b/eth{}", j), sim::Cut::silent);
    pair.a.say(1, "a asks");
    run(pair.world, {&pair.a, pair.b.get()}, 20 * base::second);  // all eight have been missed
    CHECK(of_first() == 0);
    pair.world.fabric.rail_down("a/eth0", "no carrier");
    run(pair.world, {&pair.a, pair.b.get()}, base::second);
    for (int j = 0; j < rails; ++j) pair.world.fabric.restore("a/eth0", fmt::format("b/eth{}", j));
    pair.world.fabric.restore_rail("a/eth0");  // all are tried at once
    run(pair.world, {&pair.a, pair.b.get()}, 100 * base::second);
    CHECK(of_first() > 0);
    CHECK(of_first() <= 2);
}

TEST_CASE("a link that is lost comes back though both its rails have others", "[rails][sessions][recovery]") {
    Couple pair(2, {}, GENERATE(10, 30), World::Network::flat);
    pair.world.fabric.cut("a/eth1", "b/eth1", sim::Cut::loud);
    pair.talk();
    pair.until([&] { return pair.both_have(3); });
    pair.world.fabric.restore("a/eth1", "b/eth1");
    run(pair.world, {&pair.a, pair.b.get()}, 100 * base::second);
    CHECK(pair.both_have(3));  // a fourth brings nothing
    pair.world.fabric.cut("a/eth0", "b/eth0", sim::Cut::loud);
    pair.until([&] { return pair.both_have(2); });
    pair.world.fabric.restore("a/eth0", "b/eth0");
    pair.until([&] { return pair.both_have(3); });
    for (const auto* side : {&pair.a, pair.b.get()}) CHECK(side->news.back().up);
    pair.talk();
}

TEST_CASE("where a path dies between rails that reach others, links to those stand in", "[rails][sessions][recovery]") {
    const int rails = GENERATE(2, 3);
    Couple pair(rails, {}, GENERATE(10, 30), World::Network::flat);
    const auto all = static_cast<std::size_t>(rails);
    const auto all_there = [&] { return pair.a.rails_to(1) == all && pair.b->rails_to(0) == all; };
    pair.talk();
    pair.until(all_there);
    // One after the other, until those that are left join each rail to one of the other side.
    const int kept = GENERATE_COPY(range(0, rails));
    CAPTURE(rails, kept);
    for (int i = 0; i < rails; ++i) {
        for (int j = 0; j < rails; ++j) {
            if ((j - i + rails) % rails == kept) continue;
            CAPTURE(i, j);
            pair.world.fabric.cut(fmt::format("a/eth{}", i), fmt::format("b/eth{}", j), sim::Cut::loud);
            pair.talk();
            run(pair.world, {&pair.a, pair.b.get()}, base::second);
            CHECK(all_there());
        }
    }
    CHECK(pair.both_have(all));
    for (int i = 0; i < rails; ++i)
        for (int j = 0; j < rails; ++j) pair.world.fabric.restore(fmt::format("a/eth{}", i), fmt::format("b/eth{}", j));
    run(pair.world, {&pair.a, pair.b.get()}, 20 * base::second);
    CHECK(all_there());
    pair.talk();
}

TEST_CASE("what has stood in for a lost link does not come back when it is lost itself",
          "[rails][sessions][recovery]") {
    Couple pair(2, {}, GENERATE(10, 30), World::Network::flat);
    auto& fabric = pair.world.fabric;
    fabric.cut("a/eth0", "b/eth1", sim::Cut::loud);
    fabric.cut("a/eth1", "b/eth0", sim::Cut::loud);
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    fabric.restore("a/eth0", "b/eth1");
    fabric.restore("a/eth1", "b/eth0");
    run(pair.world, {&pair.a, pair.b.get()}, 100 * base::second);  // those that were missed are forgotten
    CHECK(pair.both_have(2));
    fabric.cut("a/eth0", "b/eth0", sim::Cut::loud);
    pair.until([&] { return pair.both_have(3); });
    fabric.restore("a/eth0", "b/eth0");
    pair.until([&] { return pair.both_have(4); });
    fabric.cut("a/eth0", "b/eth1", sim::Cut::loud);
    pair.until([&] { return pair.both_have(3); });
    fabric.restore("a/eth0", "b/eth1");
    run(pair.world, {&pair.a, pair.b.get()}, 20 * base::second);
    CHECK(pair.both_have(3));
    pair.talk();
}

TEST_CASE("a rail that comes up while others are tried in the place of a lost link is connected at once, too",
          "[rails][sessions][recovery]") {
    Couple pair(3, {}, GENERATE(10, 30), World::Network::flat);
    pair.world.fabric.rail_down("a/eth2", "no carrier");
    // What might stand in is silent, and takes all the time that a pair may have.
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 3; ++j)
            if (i != j) pair.world.fabric.cut(fmt::format("a/eth{}", i), fmt::format("b/eth{}", j), sim::Cut::silent);
    pair.talk();
    run(pair.world, {&pair.a, pair.b.get()}, 3 * base::second);
    CHECK(pair.a.rails_to(1) == 2);
    pair.world.fabric.cut("a/eth0", "b/eth0", sim::Cut::loud);
    pair.until([&] { return pair.a.rails_to(1) == 1; });
    run(pair.world, {&pair.a, pair.b.get()}, 100 * base::millisecond);
    pair.world.fabric.restore_rail("a/eth2");
    const auto restored = World::now();
    pair.until([&] { return pair.a.rails_to(1) == 2; });
    CHECK(World::now() - restored < 100 * base::millisecond);
    pair.talk();
}

TEST_CASE("a rail that is new is used, from both sides", "[rails][sessions][recovery]") {
    Couple pair(2, {}, GENERATE(10, 30));
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    const auto add = [&](const char* host) {
        pair.world.fabric.add_rail(
            host, {.device = "eth2", .network = "net2", .timing = sim::simple_timing(1000, 300, 300, 400, 1.0)});
    };
    add("a");
    run(pair.world, {&pair.a, pair.b.get()}, base::second);
    CHECK(pair.a.news.back().cause == "it is new");
    CHECK(pair.both_have(2));
    add("b");
    pair.until([&] { return pair.both_have(3); });
    pair.talk();
    pair.world.cut(sim::Cut::loud);  // the other two
    pair.until([&] { return pair.both_have(1); });
    pair.talk();
    CHECK(pair.a.peer(1).traffic[2].received_frames > 0);
    pair.world.restore();
    pair.until([&] { return pair.both_have(3); });
}

TEST_CASE("no more rails are taken up than there is room for", "[rails][sessions][recovery]") {
    Couple pair(2);
    pair.talk();
    for (std::size_t i = 2; i < 4 + RailSet::spare; ++i) {
        pair.world.fabric.add_rail(
            "a", {.device = fmt::format("eth{}", i), .timing = sim::simple_timing(1000, 300, 300, 400, 1.0)});
    }
    run(pair.world, {&pair.a, pair.b.get()}, base::second);
    CHECK(pair.a.rails() == 2 + RailSet::spare);
    pair.talk();
}

TEST_CASE("who said goodbye is not chased", "[rails][sessions][recovery]") {
    Couple pair(2);
    pair.talk();
    pair.until([&] { return pair.both_have(2); });
    pair.world.fabric.cut("a/eth1", "b/eth1", sim::Cut::loud);
    pair.until([&] { return pair.both_have(1); });
    pair.world.restore();
    pair.b->manager.leaving().say_goodbye(World::now());
    pair.until([&] { return !pair.a.gone.empty(); });
    run(pair.world, {&pair.a, pair.b.get()}, 2 * base::second);
    CHECK(pair.both_have(1));
}

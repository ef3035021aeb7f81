// Sessions and the links under them: whatever is late, given up or started anew, a link carries the session it was made for,
// or none.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>

#include "repeats.hpp"
#include "unit/rails_world.hpp"

using namespace rails_world;  // NOLINT: the tests are about it

TEST_CASE("both connect at once and keep one link a rail pair, whoever goes first", "[rails][sessions]") {
    Couple pair(2, {}, GENERATE(10, 30));
    pair.talk();
    run(pair.world, {&pair.a, pair.b.get()}, 100 * base::millisecond);
    CHECK(pair.a.manager.survey().links(1).size() == 2);
    CHECK(pair.b->manager.survey().links(0).size() == 2);
    CHECK(pair.a.links_lost(1) + pair.b->links_lost(0) == 0);
}

TEST_CASE("a session that the other side has given up ends once, whatever else is refused", "[rails][sessions]") {
    Couple pair(2, impatient);
    have_b_give_up(pair);
    pair.a.say(1, "old");
    pair.until([&] { return !pair.a.gone.empty(); });
    CHECK(pair.a.gone == Codes{ErrorCode::peer_lost});
    pair.a.say(1, "again");  // at once: the other rail's refusal is on its way
    pair.until([&] { return !pair.b->heard.empty(); });
    CHECK(pair.b->heard == Strings{"again"});
    CHECK(pair.a.gone.size() == 1);
}

TEST_CASE("a late refusal of an old hello leaves the new session alone", "[rails][sessions]") {
    Couple pair(2, impatient, GENERATE(10, 30));
    have_b_give_up(pair);
    pair.world.fabric.set_timing("a/eth1", sim::simple_timing(50e6, 300, 300, 400, 1.0));
    pair.a.say(1, "old");
    pair.until([&] { return !pair.a.gone.empty(); });
    pair.talk();
    run(pair.world, {&pair.a, pair.b.get()}, 200 * base::millisecond);  // the refusal comes
    pair.talk();
    CHECK(pair.a.heard == Strings{"1", "2"});
    CHECK(pair.b->heard == Strings{"1", "2"});
    CHECK(pair.a.gone.size() == 1);
    CHECK(pair.b->gone.size() == 1);
}

TEST_CASE("a link that proves itself too late does not join the next session", "[rails][sessions]") {
    Couple pair(1, {.patience = 500 * base::millisecond, .pair_limit = 5 * base::second}, GENERATE(10, 30));
    pair.talk();
    pair.lose_links();
    pair.world.restore();
    run(pair.world, {&pair.a}, 100 * base::millisecond);  // it says hello, and then computes
    run(pair.world, {pair.b.get()}, base::second);        // and is given up meanwhile
    CHECK(pair.b->gone == Codes{ErrorCode::unreachable});
    pair.until([&] { return !pair.a.gone.empty(); });
    CHECK(pair.a.gone == Codes{ErrorCode::peer_lost});
    pair.talk();
    CHECK(pair.a.gone.size() == 1);
    CHECK(pair.b->gone.size() == 1);
}

TEST_CASE("whatever is lost, late and given up, and when, the two find together again", "[rails][sessions]") {
    const auto instance_of_a = GENERATE(10, 30);
    for (int seed = 1; seed <= railmux::test::repeats(100); ++seed) {
        INFO("seed " << seed);
        std::mt19937 random(static_cast<unsigned>(seed));
        Couple pair(2, impatient, instance_of_a);
        auto& a = pair.a;
        auto& b = *pair.b;
        int said = 0;
        const auto say = [&](Process& from, std::uint32_t to) {
            from.say(to, fmt::format("{:04}", ++said));  // so that they sort
            return fmt::format("{:04}", said);
        };
        for (int i = 0; i < 60; ++i) {
            const auto time = base::Nanoseconds{1000} << random() % 18;  // to 131 ms, beyond the patience of one
            const auto one = std::string("/eth") + (random() % 2 == 0 ? '0' : '1');
            switch (random() % 11) {
                case 0: say(a, 1); break;
                case 1: say(b, 0); break;
                case 2: pair.world.cut(sim::Cut::loud); break;
                case 3: pair.world.restore(); break;
                case 4: run(pair.world, {&a}, time); break;
                case 5: run(pair.world, {&b}, time); break;
                case 6: pair.world.fabric.advance(time); break;
                case 7: pair.world.fabric.cut("a" + one, "b" + one, sim::Cut::loud); break;
                case 8: pair.world.fabric.rail_down((i % 2 == 0 ? "a" : "b") + one, "pulled"); break;
                case 9: pair.world.restore_rails(); break;
                default: run(pair.world, {&a, &b}, time); break;
            }
        }
        pair.world.restore();
        pair.world.restore_rails();
        bool together = false;
        // A session that the other has given up ends when it is used: what is said then is lost, and that is told.
        for (int i = 0; i < 3 && !together; ++i) {
            const auto to_b = say(a, 1);
            const auto to_a = say(b, 0);
            const auto end = World::now() + 12 * base::second;
            pair.until([&] {
                together = pair.heard(a, to_a) && pair.heard(b, to_b);
                return together || World::now() > end;
            });
        }
        REQUIRE(together);
        for (const auto* heard : {&a.heard, &b.heard}) {  // each once, in order
            CHECK(std::adjacent_find(heard->begin(), heard->end(), std::greater_equal<>()) == heard->end());
        }
        pair.until([&] { return pair.both_have(2); });  // whatever was lost is back
    }
}

TEST_CASE("a rank that was started anew begins anew", "[rails][sessions]") {
    const std::uint64_t next_instance = GENERATE(5, 30);
    const auto how =
        GENERATE(as<std::string>(), "it said goodbye", "it crashed", "it crashed, we learn the new address");
    INFO(how);
    Couple pair(2);
    auto& a = pair.a;
    pair.talk();
    const auto old_address = pair.b->manager.own_address("b", 1);
    if (how == "it said goodbye") {
        pair.b->manager.leaving().say_goodbye(World::now());
        pair.until([&] { return !a.gone.empty() && pair.b->manager.idle(0); });
        pair.b->manager.leaving().close(World::now());
    } else {
        pair.world.cut(sim::Cut::silent);
    }
    pair.b = std::make_unique<Process>(pair.world, "x", Identity{.instance = next_instance, .rank = 1});
    auto& next = *pair.b;
    if (how == "it crashed, we learn the new address") {
        a.knows(next);
    } else {
        next.knows(a);
        next.say(0, "new");
        pair.until([&] { return pair.heard(a, "new"); });
    }
    a.manager.learn(old_address);  // old news
    a.say(1, "newer");
    pair.until([&] { return pair.heard(next, "newer"); });
    CHECK(next.heard == Strings{"newer"});                       // and nothing of the old session
    CHECK(a.gone.size() == (how == "it said goodbye" ? 2 : 1));  // the session is over when its links are
    CHECK(next.gone.empty());
    CHECK_FALSE(a.peer(1).left);
    CHECK(a.peer(1).failed == ErrorCode::ok);
    CHECK(a.peer(1).instance == next_instance);
    pair.world.restore();
    Process old(pair.world, "b", {.instance = 20, .rank = 1}, impatient);  // as if it were still alive
    old.knows(a);
    old.say(0, "old");
    until(pair.world, {&a, &next, &old}, [&] { return !old.gone.empty(); });
    CHECK(a.peer(1).instance == next_instance);
    pair.talk();
}

TEST_CASE("the end of a link that its predecessor closed in good order is none of a successor's", "[rails][sessions]") {
    Couple pair(1);
    auto& a = pair.a;
    auto& b = *pair.b;
    pair.talk();
    b.manager.leaving().say_goodbye(World::now());
    pair.until([&] { return b.manager.idle(0) && a.peer(1).left; });
    // That it closes the link has come, the end of the link has not: a transport may bring them with two looks.
    Frame* closing = b.manager.pool().take(FrameHeader::size);
    closing->type = FrameType::closing;
    closing->bytes = FrameHeader::size;
    b.manager.send(0, closing, World::now());
    b.manager.flush(World::now());
    run(pair.world, {&a}, base::millisecond);
    Process next(pair.world, "x", {.instance = 30, .rank = 1});
    next.knows(a);
    a.knows(next);
    a.say(1, "new");
    until(pair.world, {&a, &next}, [&] { return a.peer(1).left || Couple::heard(next, "new"); });
    CHECK_FALSE(a.peer(1).left);
    next.say(0, "newer");
    run(pair.world, {&a, &next}, 100 * base::millisecond);
    CHECK(Couple::heard(a, "newer"));
}

TEST_CASE("told that a peer's process has ended: who is not connected to it does not wait", "[rails][sessions]") {
    const auto how = GENERATE(ErrorCode::peer_left, ErrorCode::peer_lost);
    const int left = how == ErrorCode::peer_left ? 1 : 0;
    const bool waiting = GENERATE(false, true);
    Couple pair(1);
    auto& a = pair.a;
    pair.world.cut(sim::Cut::silent);
    if (waiting) {
        a.say(1, "never heard");
        run(pair.world, {&a}, 100 * base::millisecond);
    }
    a.manager.ended(1, 20, how, World::now());
    CHECK(a.gone == Codes{how});
    CHECK(a.left == left);
    a.manager.ended(1, 20, how, World::now());  // told again, as an answer
    CHECK(a.gone.size() == 1);
    a.manager.want(1, World::now());
    run(pair.world, {&a}, base::millisecond);
    CHECK(a.gone == Codes{how, how});
    CHECK(a.left == left);
    pair.world.restore();
    Process next(pair.world, "x", {.instance = 30, .rank = 1});
    a.knows(next);
    a.say(1, "new");
    until(pair.world, {&a, &next}, [&] { return pair.heard(next, "new"); });
    CHECK(a.gone.size() == 2);
}

TEST_CASE("told that a peer's process has ended: what its links bring still counts", "[rails][sessions]") {
    Couple pair(1);
    auto& a = pair.a;
    pair.talk();
    a.manager.ended(1, 20, ErrorCode::peer_lost, World::now());
    pair.b->say(0, "last words");
    pair.until([&] { return pair.heard(a, "last words"); });
    CHECK(a.gone.empty());
    pair.world.cut(sim::Cut::loud);
    const auto begin = World::now();
    until(pair.world, {&a}, [&] { return !a.gone.empty(); });
    CHECK(a.gone == Codes{ErrorCode::peer_lost});
    CHECK(World::now() - begin < 10 * base::millisecond);
}

TEST_CASE("what the job tells of a rank's processes may come after the processes themselves", "[rails][sessions]") {
    Couple pair(1);
    auto& a = pair.a;
    pair.talk();
    pair.world.cut(sim::Cut::loud);
    pair.world.restore();
    using Source = RailManager::Source;
    Process third(pair.world, "x", {.instance = 40, .rank = 1});
    const auto address_of = [&](std::uint64_t instance) {
        auto address = third.manager.own_address("x", 1);
        address.instance = instance;
        return address;
    };
    third.knows(a);
    third.say(0, "third");
    until(pair.world, {&a, &third}, [&] { return pair.heard(a, "third"); });
    const auto lost = a.gone.size();
    // Its predecessor, which it has never seen, and the one before.
    a.manager.ended(1, 20, ErrorCode::peer_lost, World::now());
    a.manager.learn(address_of(30), Source::job);
    a.manager.ended(1, 30, ErrorCode::peer_lost, World::now());
    a.manager.learn(address_of(40), Source::job);
    CHECK(a.gone.size() == lost);
    CHECK(a.peer(1).instance == 40);
    a.say(1, "still there");
    until(pair.world, {&a, &third}, [&] { return pair.heard(third, "still there"); });
    a.manager.ended(1, 40, ErrorCode::peer_left, World::now());
    a.manager.learn(address_of(50), Source::job);  // told in order: this is the next
    CHECK(a.peer(1).instance == 50);
}

TEST_CASE("who asks for a link with a process that leaves hears so at once", "[rails][sessions]") {
    Couple pair(1);
    pair.b->manager.leaving().say_goodbye(World::now());
    pair.a.say(1, "too late");
    const auto begin = World::now();
    pair.until([&] { return !pair.a.gone.empty(); });
    CHECK(pair.a.gone == Codes{ErrorCode::peer_left});
    CHECK(pair.a.left == 1);
    CHECK(World::now() - begin < 10 * base::millisecond);
}

TEST_CASE("whoever's link comes up while the other side leaves is told so, and is not waited for",
          "[rails][sessions]") {
    // However far the handshake is; and with either side as the one that asked.
    const int steps = GENERATE(range(0, 12));
    const bool asks = GENERATE(true, false);
    const bool at_once = GENERATE(true, false);
    CAPTURE(steps, asks, at_once);
    Couple pair(1);
    auto& a = pair.a;
    auto& b = *pair.b;
    (asks ? a : b).say(asks ? 1 : 0, "too late");
    for (int i = 0; i < steps; ++i) {
        while (a.manager.poll(World::now()) || b.manager.poll(World::now())) {
        }
        if (const auto next = pair.world.fabric.next_event()) pair.world.fabric.advance_to(*next);
    }
    b.manager.leaving().say_goodbye(World::now());
    if (!at_once || b.manager.connected(0)) pair.until([&] { return !b.manager.connected(0) || b.manager.idle(0); });
    b.manager.leaving().part();
    const auto begin = World::now();
    pair.until([&] { return b.manager.leaving().parted(); });
    CHECK(World::now() - begin < base::millisecond);
    if (!asks && a.peer(1).talk == nullptr) return;  // it never heard of b
    a.say(1, "are you there?");
    pair.until([&] { return !a.gone.empty(); });
    CHECK(World::now() - begin < 10 * base::millisecond);
    CHECK(a.gone.front() == ErrorCode::peer_left);
    CHECK(a.left == 1);
    CHECK(a.links_lost(1) == 0);
    CHECK(a.news.empty());
}

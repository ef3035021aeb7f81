#include <catch2/catch.hpp>

#include <string>
#include <utility>

#include "rails/lead.hpp"
#include "unit/rails_world.hpp"

using namespace railmux::rails;
namespace sched = railmux::sched;

namespace {

struct Fixture {
    FramePool pool;
    Session session{pool};
    Leads leads{.light = {.most = 500, .until = 100, .slack = 150, .idle_slack = 150, .gap = 100},
                .last_link = 3,
                .heavy = {.most = 2000, .until = 100, .slack = 2500, .idle_slack = 2500, .gap = 100, .per_byte = 1}};

    Frame* frame(std::uint64_t bytes) {
        Frame* f = pool.take(static_cast<std::size_t>(bytes));
        f->type = FrameType::eager;
        f->bytes = static_cast<std::uint32_t>(bytes);
        return f;
    }
    /// Whether a frame of so many bytes follows heavy ones; if so, it is handed over.
    bool takes(std::uint64_t bytes, railmux::base::Nanoseconds now = 50, std::uint32_t came_by = 3) {
        Frame* f = frame(bytes);
        const bool follows = leads.takes_heavy(*f, session, came_by, now);
        follows ? session.enter(*f, {}) : pool.give(f);
        return follows;
    }
    /// ... light ones.
    bool takes_light(std::uint32_t bytes, railmux::base::Nanoseconds now = 50) {
        const bool follows = leads.takes(bytes, session, now);
        if (follows) session.enter(*frame(bytes), {});
        return follows;
    }
    /// All has arrived.
    void hear() { REQUIRE(session.hear(session.numbered()) == Session::Hearing::news); }
};

}  // namespace

TEST_CASE("heavy frames follow for a while, if they are not longer than was thought of", "[rails]") {
    Fixture t;
    CHECK(t.takes(2000));
    t.hear();
    CHECK_FALSE(t.takes(2001));
    CHECK(t.takes(sched::light_bytes + 1));
    t.hear();
    CHECK_FALSE(t.takes(sched::light_bytes));  // light ones have another lead
    CHECK_FALSE(t.takes(1000, 50, 4));         // the peer uses another link now
    CHECK_FALSE(t.takes(1000, 100));
    CHECK(t.takes(1000, 99));
    t.hear();
    t.leads = {};
    CHECK_FALSE(t.takes(1000, 0, no_link));
}

TEST_CASE("frames follow until the slack is used up, which is there again when all has arrived", "[rails]") {
    Fixture t;
    SECTION("heavy ones") {
        for (int i = 0; i < 2; ++i) {
            CHECK(t.takes(1000));
            CHECK(t.takes(1000));
            CHECK(t.takes(1000));
            CHECK_FALSE(t.takes(1000));
            CHECK(t.session.hear(t.session.numbered() - 1) == Session::Hearing::news);  // it is not all
            CHECK_FALSE(t.takes(600));
            t.hear();  // what it releases may be taken later
        }
    }
    SECTION("light ones") {
        for (int i = 0; i < 2; ++i) {
            CHECK(t.takes_light(500));
            CHECK(t.takes_light(500));
            CHECK_FALSE(t.takes_light(500));
            t.hear();
        }
        CHECK_FALSE(t.takes_light(501));
        CHECK_FALSE(t.takes_light(500, 100));
    }
    SECTION("of both, which go behind each other") {
        CHECK(t.takes_light(500));
        CHECK(t.takes(2000));
        CHECK_FALSE(t.takes_light(500));
        CHECK(t.takes(2000));
        CHECK_FALSE(t.takes(1000));
        t.hear();
        CHECK(t.takes(2000));
        CHECK_FALSE(t.takes_light(500));
        t.hear();
        CHECK(t.takes_light(500));
    }
    SECTION("of those that no load has to do with") {
        t.leads.heavy.slack = t.leads.heavy.idle_slack = Lead::unlimited;
        for (int i = 0; i < 1000; ++i) CHECK(t.takes(2000));
    }
    SECTION("of both, where loads have nothing to do with the one of heavy ones") {
        t.leads.heavy.slack = t.leads.heavy.idle_slack = Lead::unlimited;
        CHECK(t.takes(2000));
        CHECK_FALSE(t.takes_light(500));
    }
    SECTION("of one for which each has a choice of its own") {
        t.leads.light.slack = t.leads.light.idle_slack = 0;
        t.leads.handed = 1;
        CHECK_FALSE(t.takes_light(500));
    }
    SECTION("of one that was found when something was on the rails") {
        t.leads.light.idle_slack = -1;
        CHECK(t.takes_light(500));
        CHECK(t.takes_light(500));
        CHECK_FALSE(t.takes_light(500));
        t.hear();
        CHECK_FALSE(t.takes_light(500));
        CHECK(t.takes(2000));
    }
}

TEST_CASE("a lead that is found anew leaves the other one what it had", "[rails]") {
    Fixture t;
    CHECK(t.takes(1000));
    CHECK(t.takes(1000));
    t.leads.rebase();
    t.leads.light.slack = 0;
    CHECK(t.takes_light(500));
    CHECK_FALSE(t.takes_light(500));
    CHECK(t.takes(1000));  // behind 2300
    CHECK_FALSE(t.takes(1000));
}

TEST_CASE("what is put does not follow", "[rails]") {
    Fixture t;
    Frame* put = t.frame(1000);
    put->piece_count = 1;
    CHECK_FALSE(t.leads.takes_heavy(*put, t.session, 3, 50));
    put->piece_count = 0;
    t.pool.give(put);
}

TEST_CASE("of frames that go alone, or with few others, one in a while is chosen for", "[rails]") {
    const auto bytes = GENERATE(std::size_t{8}, std::size_t{1000});
    const auto burst = GENERATE(std::size_t{1}, std::size_t{4});  // the far rail is 30 of them away
    rails_world::Couple pair;
    pair.talk();
    pair.exchange(50, bytes, burst);
    const auto& talk = *pair.b->peer(0).talk;
    const auto chosen = [&] { return bytes <= sched::light_bytes ? talk.leads.light.until : talk.chosen; };
    int found = 0;
    auto last = chosen();
    const auto begin = pair.world.now();
    for (int i = 0; i < 300; ++i) {
        pair.exchange(1, bytes, burst);
        found += std::exchange(last, chosen()) != last ? 1 : 0;
    }
    const auto took = pair.world.now() - begin;
    CAPTURE(bytes, burst, found, took);
    // Each 250 us; where one of the two sides does not keep up with light ones, each 100 us.
    const auto least = bytes <= sched::light_bytes ? 100 : 240;
    CHECK(found >= took / (300 * railmux::base::microsecond));
    CHECK(found <= took / (least * railmux::base::microsecond));
}

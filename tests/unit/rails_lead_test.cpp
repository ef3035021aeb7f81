#include <catch2/catch.hpp>

#include <utility>

#include "rails/lead.hpp"
#include "unit/rails_world.hpp"

using namespace railmux::rails;
namespace sched = railmux::sched;

namespace {

struct Fixture {
    FramePool pool;
    Session session{pool};
    LoneLead lead{.most = 2000, .until = 100, .last_link = 3};

    Frame* frame(std::uint64_t bytes) {
        Frame* f = pool.take(static_cast<std::size_t>(bytes));
        f->type = FrameType::eager;
        f->bytes = static_cast<std::uint32_t>(bytes);
        return f;
    }
    /// Whether a frame of so many bytes follows.
    bool takes(std::uint64_t bytes, railmux::base::Nanoseconds now = 50, std::uint32_t came_by = 3) {
        Frame* f = frame(bytes);
        const bool follows = lead.takes(*f, session, came_by, now);
        pool.give(f);
        return follows;
    }
};

}  // namespace

TEST_CASE("a heavy frame follows for a while, if it is no longer than the one before", "[rails]") {
    Fixture t;
    CHECK(t.takes(2000));
    CHECK(t.takes(sched::light_bytes + 1));
    CHECK_FALSE(t.takes(2001));
    CHECK_FALSE(t.takes(sched::light_bytes));  // light ones have another lead
    CHECK(t.takes(2000, 99));
    CHECK_FALSE(t.takes(2000, 100));
    CHECK_FALSE(t.takes(2000, 50, 4));  // the peer uses another link now
    CHECK_FALSE(LoneLead{}.takes(*t.frame(1000), t.session, no_link, 0));
}

TEST_CASE("a heavy frame follows only if all that went before has arrived", "[rails]") {
    Fixture t;
    t.session.enter(*t.frame(1000), {});
    CHECK_FALSE(t.takes(1000));
    CHECK(t.session.hear(1) == Session::Hearing::news);  // what it releases may be taken later
    CHECK(t.takes(1000));
}

TEST_CASE("what is put does not follow", "[rails]") {
    Fixture t;
    Frame* put = t.frame(1000);
    put->piece_count = 1;
    CHECK_FALSE(t.lead.takes(*put, t.session, 3, 50));
    put->piece_count = 0;
}

namespace {

/// To and fro, so many times.
void exchange(rails_world::Couple& pair, int times, std::size_t bytes) {
    for (int i = 0; i < times; ++i) {
        const std::string text(bytes, static_cast<char>('a' + i % 20));
        const auto before = std::pair(pair.b->heard.size(), pair.a.heard.size());
        pair.a.say(1, text);
        pair.until([&] { return pair.b->heard.size() > before.first; });
        pair.b->say(0, text);
        pair.until([&] { return pair.a.heard.size() > before.second; });
    }
}

}  // namespace

TEST_CASE("light frames follow until the slack is used up, which is there again when all has arrived", "[rails]") {
    Fixture t;
    Lead lead{.most = 500, .until = 100, .slack = 250, .idle_slack = 250, .gap = 100};
    CHECK(lead.takes(500, t.session, 50));
    t.session.enter(*t.frame(500), {});
    CHECK(lead.takes(500, t.session, 50));
    CHECK_FALSE(lead.takes(500, t.session, 50));
    CHECK(t.session.hear(1) == Session::Hearing::news);
    CHECK(lead.takes(500, t.session, 50));
    CHECK(lead.takes(500, t.session, 99));
    CHECK_FALSE(lead.takes(500, t.session, 100));
    CHECK_FALSE(lead.takes(501, t.session, 99));

    Lead of_busy_rails{.most = 500, .until = 100, .slack = 150, .gap = 100};
    CHECK(of_busy_rails.takes(500, t.session, 50));
    CHECK_FALSE(of_busy_rails.takes(500, t.session, 50));
    CHECK_FALSE(of_busy_rails.takes(500, t.session, 50));
}

TEST_CASE("of frames that go alone one in a while is chosen for", "[rails]") {
    const auto bytes = GENERATE(std::size_t{8}, std::size_t{1000});
    rails_world::Couple pair;
    pair.talk();
    exchange(pair, 50, bytes);
    const auto& talk = *pair.a.peer(1).talk;
    const auto until = [&] { return bytes <= sched::light_bytes ? talk.lead.until : talk.lone_lead.until; };
    int found = 0;
    auto last = until();
    const auto begin = pair.world.now();
    for (int i = 0; i < 300; ++i) {
        exchange(pair, 1, bytes);
        found += std::exchange(last, until()) != last ? 1 : 0;
    }
    const auto took = pair.world.now() - begin;
    CAPTURE(bytes, found, took);
    // Each 250 us; where one of the two sides does not keep up with light ones, each 100 us.
    const auto least = bytes <= sched::light_bytes ? 100 : 240;
    CHECK(found >= took / (300 * railmux::base::microsecond));
    CHECK(found <= took / (least * railmux::base::microsecond));
}

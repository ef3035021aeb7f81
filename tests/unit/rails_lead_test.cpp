#include <catch2/catch.hpp>

#include "rails/lead.hpp"

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

TEST_CASE("parts of a message follow each other if none is to be spread, and no other frame follows them", "[rails]") {
    Fixture t;
    const auto part = [&](bool enters = false) {
        Frame* f = t.frame(1000);
        f->type = FrameType::inlined;
        const bool follows = t.lead.takes(*f, t.session, 3, 50);
        if (enters) t.session.enter(*f, {});
        return follows;
    };
    CHECK_FALSE(part());
    t.lead.whole = true;
    CHECK(part(true));
    CHECK_FALSE(part());  // of another message
    t.lead.next = t.session.numbered();
    CHECK(part());
    CHECK_FALSE(t.takes(1000));
    CHECK(t.session.hear(1) == Session::Hearing::news);
    CHECK(t.takes(1000));
}

TEST_CASE("what is put does not follow", "[rails]") {
    Fixture t;
    Frame* put = t.frame(1000);
    put->piece_count = 1;
    CHECK_FALSE(t.lead.takes(*put, t.session, 3, 50));
    put->piece_count = 0;
}

// The outboxes: what waits for a rail, what a rail is offered, and when a frame is needed by nobody any more.
#include <catch2/catch.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "rails/outboxes.hpp"
#include "unit/rails_made.hpp"

using namespace railmux;
using namespace railmux::rails;

namespace {

constexpr std::uint64_t lined_up_put = 1 << 20;
constexpr BulkTarget::Key lined_up_key{};

/// One link, whose rail takes what a test says.
struct Posted final : private OutboxesHost {
    rails::test::Made made{{rails::test::made_traits("eth0")}};
    Outboxes outboxes{[] { return base::second; },
                      made.rails,
                      made.peers,
                      made.links,
                      made.ledger,
                      made.keeping_up,
                      made.pool,
                      *this};
    std::uint32_t peer = made.add_peer();
    Link& link = made.add_link(peer, 0);
    Conversation& talk = made.talk(peer);
    rails::test::MadeRail& rail = made.rail(0);
    base::Nanoseconds now = made.now;
    std::vector<const Frame*> freed;
    int unsettled = 0;
    int controls = 0;

    /// The next message; it has a token, so that its release is told.
    Frame& message() {
        Frame& frame = *made.pool.take(FrameHeader::size);
        frame.type = FrameType::eager;
        frame.bytes = FrameHeader::size;
        frame.token = 1;
        talk.session.enter(frame, {});
        return frame;
    }
    Frame& lined_up() {
        Frame& frame = message();
        outboxes.enqueue(link, &frame, now);
        return frame;
    }
    /// One that puts.
    Frame& lined_up_bulk(const BulkTarget& target) {
        Frame& frame = message();
        frame.type = FrameType::fin;
        frame.piece_count = 1;
        frame.payload = lined_up_put;
        frame.target = &target;
        outboxes.enqueue(link, &frame, now);
        return frame;
    }
    Frame& acknowledgement() {
        Frame& frame = *made.pool.take(FrameHeader::size);
        frame.type = FrameType::ack;
        frame.bytes = FrameHeader::size;
        frame.acked = true;
        outboxes.enqueue(link, &frame, now);
        return frame;
    }
    void acknowledge(Frame& frame) {
        made.ledger.uncharge(frame, now);
        frame.acked = true;
        outboxes.release_if_free(peer, frame);
    }
    /// The rail is done with what it took first.
    void finish() {
        auto& frame = *reinterpret_cast<Frame*>(rail.posted.front().cookie);
        rail.posted.erase(rail.posted.begin());
        --frame.undone;
        if (frame.undone == 0 && !frame.queued) outboxes.gone(link, frame);
    }
    [[nodiscard]] std::vector<const Frame*> taken() const {
        std::vector<const Frame*> frames;
        for (const auto& work : rail.posted) frames.push_back(reinterpret_cast<const Frame*>(work.cookie));
        return frames;
    }

private:
    void unsettle(Link&, base::Nanoseconds) override { ++unsettled; }
    void control_gone(Link&, const Frame&) override { ++controls; }
    void released(std::uint32_t, const Frame& frame) override { freed.push_back(&frame); }
};

}  // namespace

TEST_CASE("what a rail refuses waits in order, and the door is tried before a crowd is lined up again",
          "[rails][outbox]") {
    Posted p;
    std::vector<const Frame*> sent;
    for (int i = 0; i < 6; ++i) sent.push_back(&p.lined_up());
    p.rail.room = 3;
    p.outboxes.post_all(p.now);
    CHECK(p.rail.offered == 6);
    CHECK(p.outboxes.any());
    CHECK(p.link.refused);
    CHECK(p.link.queued_bytes == 6 * FrameHeader::size);

    p.outboxes.post_all(p.now);  // there is no room yet
    CHECK(p.rail.offered == 1);
    CHECK(p.rail.posted.size() == 3);

    p.rail.room = 100;
    p.outboxes.post_all(p.now);
    CHECK_FALSE(p.outboxes.any());
    CHECK_FALSE(p.link.refused);
    CHECK(p.taken() == sent);
    CHECK(p.made.peers[p.peer].traffic[0].sent_frames == 6);
}

TEST_CASE("a frame is given back once neither the session nor the rail nor an outbox needs it", "[rails][outbox]") {
    Posted p;
    Frame& first = p.lined_up();
    Frame& second = p.lined_up();
    p.rail.room = 1;
    p.outboxes.post_all(p.now);
    p.acknowledge(first);   // the rail still reads it
    p.acknowledge(second);  // it went over another link, and waits here still
    CHECK(p.freed.empty());
    p.finish();
    CHECK(p.freed == std::vector<const Frame*>{&first});
    p.rail.room = 1;
    p.outboxes.post_all(p.now);
    CHECK(p.freed.size() == 1);
    p.finish();
    CHECK(p.freed == std::vector<const Frame*>{&first, &second});
    CHECK(p.link.queued_bytes == 0);
    CHECK(p.made.pool.in_use() == 0);
}

TEST_CASE("what a rail copies is over as soon as it is taken", "[rails][outbox]") {
    Posted p;
    p.link.quiet_max = 256;
    p.acknowledgement();
    p.rail.room = 1;
    p.outboxes.post_all(p.now);
    CHECK(p.rail.posted.front().quiet);
    CHECK(p.controls == 1);
    CHECK(p.made.pool.in_use() == 0);

    Frame& told = p.lined_up();  // of whoever is told of releases the rail says when it is done: not from within a post
    p.rail.room = 1;
    p.outboxes.post_all(p.now);
    CHECK_FALSE(p.rail.posted.back().quiet);
    p.rail.posted.erase(p.rail.posted.begin());
    p.acknowledge(told);
    p.finish();
    CHECK(p.freed.size() == 1);
}

TEST_CASE("an acknowledgement is owed until a rail has a frame that carries it", "[rails][outbox]") {
    Posted p;
    p.talk.owed.frames = 3;
    p.lined_up();
    p.outboxes.post_all(p.now);
    CHECK(p.talk.owed.any());
    p.rail.room = 1;
    p.outboxes.post_all(p.now);
    CHECK_FALSE(p.talk.owed.any());
    p.acknowledge(*reinterpret_cast<Frame*>(p.rail.posted.front().cookie));
    p.finish();
}

TEST_CASE("of a put the rail takes the bytes first, then the frame that tells of them", "[rails][outbox]") {
    Posted p;
    const BulkTarget target{std::span(&lined_up_key, 1)};
    Frame& bulk = p.lined_up_bulk(target);
    CHECK(p.link.queued_bytes == FrameHeader::size + lined_up_put);
    p.rail.room = 1;
    p.outboxes.post_all(p.now);
    REQUIRE(p.rail.posted.size() == 1);
    CHECK(p.rail.posted.front().op == transports::Op::put);
    CHECK(p.outboxes.any());
    p.rail.room = 1;
    p.outboxes.post_all(p.now);
    REQUIRE(p.rail.posted.size() == 2);
    CHECK(p.rail.posted.back().op == transports::Op::send);
    CHECK_FALSE(p.outboxes.any());
    p.acknowledge(bulk);
    p.finish();
    CHECK(p.freed.empty());
    p.finish();
    CHECK(p.freed.size() == 1);
}

TEST_CASE("a put that was denied while it waited goes without its bytes", "[rails][outbox]") {
    Posted p;
    const BulkTarget target{std::span(&lined_up_key, 1)};
    Frame& bulk = p.lined_up_bulk(target);
    bulk.denied = true;
    p.rail.room = 2;
    p.outboxes.post_all(p.now);
    REQUIRE(p.rail.posted.size() == 1);
    CHECK(p.rail.posted.front().op == transports::Op::send);
    CHECK((bulk.flags & frame_flag::denied) != 0);
    CHECK(p.link.bulk == 0);
    CHECK(p.link.queued_bytes == FrameHeader::size);
    CHECK(p.made.ledger.pace(0).backlog() == FrameHeader::size);
    p.acknowledge(bulk);
    p.finish();
}

TEST_CASE("a small frame needs no outbox, unless something waits there", "[rails][outbox]") {
    Posted p;
    p.link.at_once_max = 256;
    p.rail.room = 1;
    Frame& alone = p.message();
    CHECK(p.outboxes.post_at_once(p.link, p.talk, alone, p.now));
    CHECK_FALSE(p.outboxes.any());
    CHECK(p.rail.posted.size() == 1);
    p.rail.posted.clear();
    p.acknowledge(alone);
    CHECK(p.freed.size() == 1);

    Frame& first = p.lined_up();
    p.rail.room = 2;
    Frame& second = p.message();
    CHECK_FALSE(p.outboxes.post_at_once(p.link, p.talk, second, p.now));  // or it would overtake
    p.outboxes.line_up(p.link, &second, p.now);
    p.outboxes.post_all(p.now);
    CHECK(p.taken() == std::vector<const Frame*>{&first, &second});
    for (Frame* each : {&first, &second}) {
        p.acknowledge(*each);
        p.finish();
    }
    CHECK(p.unsettled == 3);  // nobody has looked at this link since
}

TEST_CASE("of acknowledgements that wait one makes way, and what its link had goes with the link", "[rails][outbox]") {
    Posted p;
    Frame& message = p.lined_up();
    p.acknowledgement();
    p.outboxes.drop_waiting_ack(p.link);
    p.outboxes.drop_waiting_ack(p.link);  // the message stays
    CHECK(p.made.pool.in_use() == 1);
    CHECK(p.link.queued_bytes == FrameHeader::size);

    int gets = 0;
    Frame& get = *p.made.pool.take(FrameHeader::size);
    get.gets = true;
    get.acked = true;
    p.outboxes.line_up(p.link, &get, p.now);
    p.outboxes.clear(p.link, [&](Frame& one) {
        ++gets;
        p.made.pool.give(&one);
    });
    CHECK(gets == 1);
    CHECK(p.link.outbox.empty());
    CHECK(p.link.queued_bytes == 0);
    CHECK_FALSE(message.queued);
    CHECK(p.made.pool.in_use() == 1);  // it is not acknowledged: another link is to bring it
    p.acknowledge(message);
}

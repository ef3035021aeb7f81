// The feeder: what of large messages is handed to which link, and when; and what is got over it.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "rails/feeder.hpp"
#include "unit/rails_made.hpp"

using namespace railmux;
using namespace railmux::rails;

namespace {

constexpr std::uint64_t fed_piece = 1 << 20;
constexpr std::uint64_t fed_message = 64 << 20;

std::vector<transports::RailTraits> fed_rails() {
    std::vector<transports::RailTraits> all{rails::test::made_traits("eth0"), rails::test::made_traits("eth1")};
    for (auto& traits : all) traits.get = true;
    return all;
}

/// What the layers above and below do: bulk and gets by peer, over any rail; and links that keep pieces until they are done.
struct Fed final : private Upper, private FeederHost {
    rails::test::Made made{fed_rails()};
    Regions regions{made.rails, made.peers, made.links, made.log};
    BulkPlan plan{made.rails, *made.policy, *this, made.ledger, made.peers, made.links, regions};
    Feeder feeder{fed_piece, made.peers, made.links, plan, made.ledger, regions, made.pool, *this, *this};
    base::Nanoseconds& now = made.now;
    std::map<std::uint32_t, std::uint64_t> bulk, gets;  // bytes left, by peer
    std::map<std::uint32_t, std::uint64_t> largest_got;
    struct Given {
        Link* link = nullptr;
        Frame* frame = nullptr;
    };
    std::vector<Given> given;  // in this order, and not done yet
    std::vector<transports::WorkStatus> ends;
    std::vector<std::uint32_t> numbered;

    ~Fed() {
        for (auto& each : given) made.pool.give(each.frame);
        CHECK(made.pool.in_use() == 0);
    }
    std::uint64_t on(const Link& link) const {
        std::uint64_t bytes = 0;
        for (const auto& each : given) bytes += each.link == &link ? each.frame->payload : 0;
        return bytes;
    }
    auto pieces_on(const Link& link) const { return std::ranges::count(given, &link, &Given::link); }
    /// The oldest piece of the link is done, and acknowledged.
    void finish(Link& link) {
        const auto one = std::ranges::find(given, &link, &Given::link);
        REQUIRE(one != given.end());
        Frame* frame = one->frame;
        given.erase(one);
        now += base::millisecond;
        if (frame->gets) return feeder.end_get(link, *frame, transports::WorkStatus::ok, now);
        --link.bulk;
        made.ledger.uncharge(*frame, now);
        made.pool.give(frame);
        feeder.piece_gone(link, now);
    }

private:
    Frame* piece(std::map<std::uint32_t, std::uint64_t>& left, std::uint32_t peer, std::uint64_t most) {
        const auto bytes = std::min(left[peer], most);
        if (bytes == 0) return nullptr;
        left[peer] -= bytes;
        Frame* frame = made.pool.take(FrameHeader::size);
        frame->type = FrameType::fin;
        frame->bytes = FrameHeader::size;
        frame->piece_count = 1;
        frame->payload = static_cast<std::uint32_t>(bytes);
        return frame;
    }
    Frame* next_bulk(std::uint32_t peer, std::uint32_t, std::uint8_t, std::uint64_t most) override {
        CHECK(most <= fed_piece);
        return piece(bulk, peer, most);
    }
    Frame* next_get(std::uint32_t peer, std::uint32_t, std::uint8_t, std::uint64_t most) override {
        Frame* frame = piece(gets, peer, most);
        if (frame == nullptr) return nullptr;
        frame->gets = true;
        largest_got[peer] = std::max<std::uint64_t>(largest_got[peer], frame->payload);
        return frame;
    }
    std::uint64_t bulk_left(std::uint32_t peer, std::uint8_t) override { return bulk[peer]; }
    void on_got(std::uint32_t, const Frame& frame, transports::WorkStatus status) override {
        CHECK(frame.gets);
        ends.push_back(status);
    }
    void number(Conversation& talk, Frame& frame, base::Nanoseconds) override {
        talk.session.enter(frame, {});
        numbered.push_back(frame.seq);
    }
    void line_up(Link& link, Frame* frame, base::Nanoseconds at) override {
        frame->link = link.slot;
        frame->sent = at;
        if (!frame->gets) ++link.bulk;
        given.push_back({&link, frame});
    }

    bool on_frame(std::uint32_t, const FrameHeader&, std::span<const std::byte>) override { return true; }
    std::span<const std::byte> closed_by(std::uint32_t, std::span<const std::byte>) noexcept override { return {}; }
    void on_released(std::uint32_t, const Frame&) override {}
    void on_sendable(std::uint32_t) override {}
    void on_put_denied(std::uint64_t) override {}
    void on_link_lost(std::uint32_t, std::uint32_t) override {}
    void on_peer_gone(std::uint32_t, ErrorCode) override {}
    void on_peer_left(std::uint32_t) override {}
    void on_rail_news(const RailNews&) override {}
    void on_address_wanted(std::uint32_t) override {}
    void on_address_changed() override {}
};

}  // namespace

TEST_CASE("feeder: what is offered is given out with the next feed, and not before", "[rails][bulk]") {
    Fed f;
    const auto peer = f.made.add_peer();
    Link& link = f.made.add_link(peer, 0);
    CHECK_FALSE(f.feeder.any());
    f.bulk[peer] = fed_message;
    f.feeder.offer(peer);
    f.feeder.offer(peer);
    CHECK(f.feeder.offered());
    CHECK(f.given.empty());
    f.feeder.feed_all(f.now);
    CHECK_FALSE(f.feeder.offered());
    CHECK(f.feeder.any());
    CHECK(f.pieces_on(link) == BulkPlan::pieces_per_link);
}

TEST_CASE("feeder: a link is kept full until all is given out, and then nothing is claimed any more", "[rails][bulk]") {
    Fed f;
    const auto peer = f.made.add_peer();
    Link& link = f.made.add_link(peer, 0);
    f.bulk[peer] = 10 * fed_piece;
    f.feeder.offer(peer);
    f.feeder.feed_all(f.now);
    std::uint64_t gone = 0;
    while (f.pieces_on(link) > 0) {
        CHECK((f.bulk[peer] == 0 || f.pieces_on(link) == BulkPlan::pieces_per_link));
        gone += f.given.front().frame->payload;
        f.finish(link);
    }
    CHECK(gone == 10 * fed_piece);
    CHECK(std::ranges::is_sorted(f.numbered));
    f.feeder.feed_all(f.now);
    CHECK_FALSE(f.feeder.any());
    CHECK(f.plan.claimed(0) == 0);
    CHECK(f.plan.balanced());
}

TEST_CASE("feeder: several links share a message by what they carry", "[rails][bulk]") {
    Fed f;
    const auto peer = f.made.add_peer();
    Link& fast = f.made.add_link(peer, 0, 1);
    Link& slow = f.made.add_link(peer, 1, 4);
    f.bulk[peer] = fed_message;
    f.feeder.offer(peer);
    f.feeder.feed_all(f.now);
    const auto claims = f.made.talk(peer).claims;
    CHECK(f.on(fast) > 0);
    CHECK(f.on(slow) > 0);
    CHECK(f.on(fast) + f.on(slow) + f.bulk[peer] == fed_message);
    CHECK(claims[0] + claims[1] == f.bulk[peer]);
    CHECK(claims[0] > 3 * claims[1]);
    CHECK(f.plan.claimed(0) == claims[0]);
    CHECK(f.plan.balanced());
}

TEST_CASE("feeder: peers take turns in who is given something first", "[rails][bulk]") {
    Fed f;
    for (int i = 0; i < 3; ++i) f.made.add_link(f.made.add_peer(), 0);
    std::vector<std::uint32_t> firsts;
    for (int round = 0; round < 3; ++round) {
        for (std::uint32_t peer = 0; peer < 3; ++peer) {
            f.bulk[peer] = fed_message;
            f.feeder.offer(peer);
        }
        f.feeder.feed_all(f.now);
        firsts.push_back(f.given.front().link->peer);
        while (!f.given.empty()) {  // done, all at the same time: nobody is fed in between
            f.made.pool.give(std::exchange(f.given.back().frame, nullptr));
            --f.given.back().link->bulk;
            f.given.pop_back();
        }
    }
    std::ranges::sort(firsts);
    CHECK(firsts == std::vector<std::uint32_t>{0, 1, 2});
}

TEST_CASE("feeder: bulk waits for a link, and is forgotten with its session", "[rails][bulk]") {
    Fed f;
    const auto peer = f.made.add_peer();
    f.bulk[peer] = fed_message;
    f.feeder.offer(peer);
    f.feeder.feed_all(f.now);
    CHECK(f.feeder.any());
    if (GENERATE(true, false)) {
        Link& link = f.made.add_link(peer, 1);
        f.feeder.link_up(link, f.now);
        CHECK(f.pieces_on(link) == BulkPlan::pieces_per_link);
        f.feeder.forget(peer);
    }
    f.feeder.forget(peer);
    CHECK_FALSE(f.feeder.any());
}

TEST_CASE("feeder: a full window ends what a link is given", "[rails][bulk]") {
    Fed f;
    const auto peer = f.made.add_peer();
    Link& link = f.made.add_link(peer, 0);
    auto& session = f.made.talk(peer).session;
    std::vector<Frame*> before;
    while (session.open_for_messages()) {
        before.push_back(f.made.pool.take(FrameHeader::size));
        session.enter(*before.back(), {});
    }
    f.bulk[peer] = fed_message;
    f.feeder.offer(peer);
    f.feeder.feed_all(f.now);
    CHECK(f.given.empty());
    CHECK(f.bulk[peer] == fed_message);
    CHECK(f.feeder.any());
    REQUIRE(session.acknowledged(1, {}, [&](Frame&) {}));
    f.feeder.feed_all(f.now);
    CHECK(f.pieces_on(link) == 1);
    for (auto* frame : before) f.made.pool.give(frame);
}

TEST_CASE("feeder: gets go two at a time over each link that can, in pieces that fit a cache", "[rails][bulk]") {
    Fed f;
    const auto peer = f.made.add_peer();
    Link& one = f.made.add_link(peer, 0);
    Link& sealed = f.made.add_link(peer, 1);
    sealed.checksum = true;  // what is got has none
    f.gets[peer] = 4 * fed_piece;
    f.feeder.offer_gets(peer, f.now);
    CHECK(f.pieces_on(one) == BulkPlan::pieces_per_link);
    CHECK(f.pieces_on(sealed) == 0);
    while (f.pieces_on(one) > 0) {
        CHECK(one.gets == f.pieces_on(one));
        f.finish(one);
    }
    CHECK(f.gets[peer] == 0);
    CHECK(one.gets == 0);
    CHECK(f.largest_got[peer] == 256 * 1024);
    CHECK(one.bulk_received == 4 * fed_piece);
    CHECK(f.made.peers[peer].traffic[0].received_bytes == 4 * fed_piece);
    CHECK(f.ends.size() == 16);
}

TEST_CASE("feeder: a get that brought nothing counts as nothing, and is followed by none", "[rails][bulk]") {
    Fed f;
    const auto peer = f.made.add_peer();
    Link& link = f.made.add_link(peer, 0);
    f.gets[peer] = 4 * fed_piece;
    f.feeder.offer_gets(peer, f.now);
    const auto status =
        GENERATE(transports::WorkStatus::link_lost, transports::WorkStatus::access_denied, transports::WorkStatus::ok);
    if (status == transports::WorkStatus::ok) link.state = LinkState::closing;  // it is here, and the last
    const auto ended = std::exchange(f.given, {});
    for (const auto& each : ended) f.feeder.end_get(link, *each.frame, status, f.now);
    CHECK(f.ends == std::vector(ended.size(), status));
    CHECK(f.given.empty());
    CHECK(link.gets == 0);
    CHECK((link.bulk_received > 0) == (status == transports::WorkStatus::ok));
}

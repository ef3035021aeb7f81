// Leaving by itself: who is told what, and when, and which links end. Whole rail managers leave in rails_sessions_test.cpp.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "rails/leaving.hpp"
#include "unit/rails_made.hpp"

using namespace railmux;
using namespace railmux::rails;

namespace {

/// A rail manager that notes what it is asked. Frames that close links wait until a test says that they have gone.
struct LeavingLinks final : private LeavingHost {
    rails::test::Made made{{rails::test::made_traits("eth0"), rails::test::made_traits("eth1")}};
    Leaving leaving{made.rails, made.peers, made.links, made.pool, *this};
    bool closed = false;                    // for those that are new
    std::vector<std::uint32_t> heard_bye;   // peers
    std::vector<std::uint32_t> told;        // links, that they end
    std::vector<std::uint32_t> ended;       // peers, whose sessions were
    std::vector<std::uint32_t> broken_off;  // links
    int looks = 0;                          // at the first rail,
    int looks_with_news = 0;                // ... which has something at the next so many
    int looks_until_told = 0;

    ~LeavingLinks() { CHECK(made.pool.in_use() == 0); }

    /// A peer with a link, of which leaving has heard.
    Link& connect(std::uint32_t peer, std::uint32_t rail = 0) {
        Link& link = made.add_link(peer, rail);
        leaving.link_up(link);
        return link;
    }
    Link& connect() { return connect(made.add_peer()); }
    void poll() {
        if (leaving.any_late()) leaving.close_late(made.now);
    }
    [[nodiscard]] bool was_told(const Link& link) const { return std::ranges::count(told, link.slot) == 1; }
    [[nodiscard]] bool is_broken_off(const Link& link) const { return std::ranges::count(broken_off, link.slot) == 1; }

private:
    void let_nobody_in() override { closed = true; }
    void send(std::uint32_t peer, Frame* frame, base::Nanoseconds) override {
        CHECK(closed);
        CHECK(frame->type == FrameType::bye);
        CHECK(frame->flags == (frame_flag::ordered | frame_flag::ack_now));
        heard_bye.push_back(peer);
        made.pool.give(frame);
    }
    void enqueue(Link& link, Frame* frame, base::Nanoseconds) override { post_now(link, frame); }
    void post_now(Link& link, Frame* frame) override {
        CHECK(link.state == LinkState::live);
        CHECK(frame->type == FrameType::closing);
        CHECK(frame->acked);
        told.push_back(link.slot);
        looks_until_told = looks;
        made.pool.give(frame);
    }
    bool look_at(std::uint32_t rail) override {
        if (rail != 0) return false;
        ++looks;
        return looks_with_news > 0 && looks_with_news-- > 0;
    }
    void end_session(std::uint32_t peer, std::uint8_t next_epoch, ErrorCode code) override {
        CHECK(next_epoch == made.peers[peer].epoch);
        CHECK(code == ErrorCode::cancelled);
        for (const auto slot : made.talk(peer).links) CHECK(was_told(made.links.at(slot)));
        while (!made.talk(peer).links.empty()) made.lose(made.links.at(made.talk(peer).links.front()));
        made.peers[peer].talk.reset();
        ended.push_back(peer);
    }
    void break_off(Link& link, std::string_view, base::Nanoseconds) override {
        CHECK(link.leaving);  // or it would be a loss
        broken_off.push_back(link.slot);
        made.rail(link.rail).disconnect(link.id);
        made.lose(link);
    }
};

}  // namespace

TEST_CASE("leaving: goodbye goes once to each peer that is connected and has not left", "[rails][leaving]") {
    LeavingLinks f;
    const auto here = f.connect().peer;
    f.connect(here, 1);
    f.made.peers[f.connect().peer].left = true;
    f.made.add_peer();                                          // without a link
    static_cast<void>(f.made.peers.of_instance(100, no_rank));  // only known
    CHECK_FALSE(f.leaving.said_goodbye());
    f.leaving.say_goodbye(f.made.now);
    CHECK(f.leaving.said_goodbye());
    CHECK(f.heard_bye == std::vector{here});
    CHECK(f.told.empty());
    CHECK_FALSE(f.leaving.any_late());
}

TEST_CASE("leaving: who parts has read what was there, and ends each session when its links are told",
          "[rails][leaving]") {
    LeavingLinks f;
    Link& one = f.connect();
    Link& other = f.connect(one.peer, 1);
    const auto alone = f.made.add_peer();
    f.leaving.say_goodbye(f.made.now);
    f.looks_with_news = 1000;
    f.leaving.part();
    CHECK(f.looks_with_news == 0);
    CHECK(f.looks_until_told > 1000);  // some in vain: more may be on its way
    CHECK((f.was_told(one) && f.was_told(other)));
    CHECK(f.ended == std::vector{one.peer, alone});
    CHECK_FALSE(f.leaving.parted());
    for (auto* link : {&one, &other}) f.made.links.remove(*link);
    CHECK(f.leaving.parted());
}

TEST_CASE("leaving: peers that go on talking do not hold up who leaves, nor do rails that are down",
          "[rails][leaving]") {
    LeavingLinks f;
    f.connect();
    f.leaving.say_goodbye(f.made.now);
    const bool down = GENERATE(true, false);
    f.made.rails[0].polled = !down;
    f.looks_with_news = 1'000'000'000;
    f.leaving.part();
    CHECK(f.told.size() == 1);
    CHECK((f.looks > 0) != down);
}

TEST_CASE("leaving: a link of somebody who has not heard our goodbye is told that it ends, and ends when that has gone",
          "[rails][leaving]") {
    LeavingLinks f;
    f.leaving.say_goodbye(f.made.now);
    const bool parted = GENERATE(true, false);
    if (parted) f.leaving.part();
    Link& link = f.connect();
    Link& second = f.connect(link.peer, 1);
    const auto looks = f.looks;
    f.poll();
    CHECK(f.looks_until_told > looks);  // what it had sent was read before
    CHECK((f.was_told(link) && f.was_told(second)));
    CHECK_FALSE(f.leaving.any_late());
    f.poll();
    CHECK(f.broken_off.empty());
    f.leaving.closing_gone(link);
    CHECK(f.leaving.any_late());
    f.poll();
    CHECK(f.is_broken_off(link));
    CHECK_FALSE(f.is_broken_off(second));
    f.leaving.part();  // its session goes on for as long as it has links
    CHECK(f.ended.empty());
    f.leaving.closing_gone(second);
    f.poll();
    CHECK(f.is_broken_off(second));
    CHECK_FALSE(f.leaving.any_late());
}

TEST_CASE("leaving: links with who was connected by then go on until we part", "[rails][leaving]") {
    LeavingLinks f;
    Link& link = f.connect();
    CHECK_FALSE(f.leaving.any_late());
    f.leaving.say_goodbye(f.made.now);
    f.connect(link.peer, 1);  // the goodbye goes over it just as well
    CHECK_FALSE(f.leaving.any_late());
    f.leaving.closing_gone(link);
    f.poll();
    CHECK(f.told.empty());
    CHECK(f.broken_off.empty());
}

TEST_CASE("leaving: a late link that is lost, or that the peer ends, is not told so", "[rails][leaving]") {
    LeavingLinks f;
    f.leaving.say_goodbye(f.made.now);
    Link& link = f.connect();
    const bool lost = GENERATE(true, false);
    if (lost) f.made.lose(link);
    link.leaving = !lost;
    f.poll();
    CHECK(f.told.empty());
    CHECK(f.is_broken_off(link) == !lost);
    f.leaving.closing_gone(link);  // what was said on it before has gone, or died with it
    CHECK_FALSE(f.leaving.any_late());
}

TEST_CASE("leaving: to close ends all links, and waits for their ends, if not for ever", "[rails][leaving]") {
    LeavingLinks f;
    Link& live = f.connect();
    Link& asked = f.made.links.add(1, {.index = 100, .generation = 1});
    asked.state = GENERATE(LinkState::connecting, LinkState::accepting, LinkState::proving);
    Link& over = f.connect(f.made.add_peer(), 1);
    f.made.rail(1).disconnect(over.id);
    f.made.lose(over);
    Frame* waiting = f.made.pool.take(FrameHeader::size);
    live.outbox.push(waiting);
    const bool tells = GENERATE(true, false);
    f.made.rail(1).tells_ends = tells;
    f.leaving.close(f.made.now);
    CHECK(f.closed);
    CHECK(f.told == std::vector{live.slot});
    CHECK(f.is_broken_off(live));
    CHECK(live.state == LinkState::free);
    CHECK(live.outbox.empty());
    f.made.pool.give(waiting);
    CHECK(f.leaving.parted() == tells);
    if (!tells) CHECK(f.made.rail(1).disconnected == std::vector{over.id, asked.id});
}

#include <catch2/catch.hpp>

#include <memory>
#include <vector>

#include "rails/ledger.hpp"

using namespace railmux;
using namespace railmux::rails;

namespace {

constexpr base::Nanoseconds step = 1000;  // between two frames
constexpr base::Nanoseconds there_and_back = 600;

/// One link to one peer.
struct Books {
    FramePool pool;
    PeerTable peers;
    LinkTable links{1};
    Looks looks;
    std::unique_ptr<sched::Policy> policy = sched::make_policy("vft", 1);
    Ledger ledger{1, *policy, peers, links, looks};
    Link* link = &links.add(0, {.index = 0, .generation = 1});
    Conversation* talk = nullptr;
    base::Nanoseconds now = base::second;

    Books() {
        link->peer = peers.of_instance(7, no_rank);
        link->state = LinkState::live;
        auto& known = peers[link->peer];
        known.talk = std::make_unique<Conversation>(pool);
        known.traffic = std::make_unique<Traffic[]>(1);
        talk = known.talk.get();
        talk->links = {link->slot};
        talk->candidates = {sched::Candidate{.rail = 0}};
        talk->costs = {sched::Cost{.latency = sched::to_ticks(base::Nanoseconds{300}),
                                   .gap = sched::to_ticks(base::Nanoseconds{100}),
                                   .per_byte = 16}};
    }
    Frame& frame(std::uint32_t bytes = 64) {
        Frame& made = *pool.take(FrameHeader::size);
        made.type = FrameType::eager;
        made.bytes = bytes;
        talk->session.enter(made);
        made.link = link->slot;
        made.sent = now;
        return made;
    }
    bool put_off(Frame& one) { return ledger.put_off(*link, *talk, one, now); }
    /// The peer has everything before `ack`, says a frame of its own.
    void hear(std::uint32_t ack) {
        REQUIRE(talk->session.hear(ack) == Session::Hearing::news);
        ledger.heard(*link, *talk, {.type = FrameType::eager, .ack = ack}, now);
    }
    void take(std::uint32_t ack) {
        const auto each = [&](Frame& one) {
            ledger.acknowledged(one, *link, {.type = FrameType::eager, .ack = ack}, now);
            pool.give(&one);
        };
        REQUIRE(talk->session.acknowledged(ack, {}, each));
        ledger.settle(now, 0);
    }
    /// One that meets an empty link; all before it have come, too.
    void exchange(std::uint32_t bytes, base::Nanoseconds took) {
        Frame& one = frame(bytes);
        const auto ack = one.seq + 1;
        ledger.charge(*link, one, now);
        now += took;
        take(ack);
    }
    /// As the policy is told it.
    [[nodiscard]] sched::Ticks latency() {
        ledger.refresh(*talk, now);
        return talk->candidates.front().cost.latency;
    }
    [[nodiscard]] std::uint64_t backlog() const { return ledger.pace(0).backlog(); }
};

}  // namespace

TEST_CASE("ledger: what is put off is charged together, and taken off again") {
    Books f;
    for (int i = 0; i < 5; ++i) REQUIRE(f.put_off(f.frame()));
    REQUIRE(f.ledger.any_late());
    REQUIRE(f.backlog() == 0);
    f.ledger.charge_late();
    REQUIRE_FALSE(f.ledger.any_late());
    REQUIRE(f.backlog() == 5 * 64);
    REQUIRE(f.link->unacked_bytes == 5 * 64);
    f.take(3);
    REQUIRE(f.backlog() == 2 * 64);
    f.take(5);
    REQUIRE(f.backlog() == 0);
    REQUIRE(f.link->unacked_bytes == 0);
    REQUIRE(f.pool.in_use() == 0);
}

TEST_CASE("ledger: so many are put off, and no more") {
    Books f;
    int count = 1;
    while (f.put_off(f.frame())) ++count;
    REQUIRE(count == 16);
    f.ledger.charge_late();
    REQUIRE(f.put_off(f.frame()));
    f.ledger.charge_late();
    f.take(17);
}

TEST_CASE("ledger: a frame that goes elsewhere is on its link no more") {
    Books f;
    Frame& one = f.frame();
    Frame& other = f.frame(128);
    REQUIRE(f.put_off(one));
    f.ledger.charge_late();
    f.ledger.charge(*f.link, other, f.now);
    REQUIRE(f.backlog() == 64 + 128);
    f.ledger.uncharge(one, f.now);
    f.ledger.uncharge(one, f.now);  // once
    REQUIRE(f.backlog() == 128);
    f.take(2);
    REQUIRE(f.link->unacked_bytes == 0);
}

TEST_CASE("ledger: of what is put off one frame is timed, if nothing was under way before it") {
    Books f;
    std::uint32_t sent = 0;
    for (int batch = 0; batch < 8; ++batch) {
        REQUIRE(f.link->echo.latency(f.now) == 0);  // fewer may be chance
        for (int i = 0; i < 4; ++i) {               // a question, its answer, the next question
            static_cast<void>(f.put_off(f.frame()));
            f.now += i == 0 ? there_and_back : step;
            f.hear(++sent);
        }
        f.ledger.charge_late();
        f.take(sent);
    }
    REQUIRE(f.link->echo.latency(f.now) == sched::to_ticks(there_and_back) / 2);
}

TEST_CASE("ledger: an answer to several frames, or to one with others before it, times none") {
    Books f;
    std::uint32_t sent = 1;
    static_cast<void>(f.put_off(f.frame()));
    for (int batch = 0; batch < 20; ++batch) {
        static_cast<void>(f.put_off(f.frame()));
        f.now += there_and_back;
        f.hear(++sent);
        static_cast<void>(f.put_off(f.frame()));  // not known to have arrived when the next ones go
        f.ledger.charge_late();
        f.take(sent++);
    }
    REQUIRE(f.link->echo.latency(f.now) == 0);
    f.take(sent);
}

TEST_CASE("ledger: what lone messages of some size are late by counts as latency of their link") {
    Books f;
    const auto thought = f.latency();
    for (int i = 0; i < 3; ++i) f.exchange(544, 20'000);
    REQUIRE(f.latency() == thought);
    f.exchange(544, 20'000);
    REQUIRE(f.latency() >= thought + sched::to_ticks(base::Nanoseconds{19'000}));
    REQUIRE(f.latency() <= thought + sched::to_ticks(base::Nanoseconds{20'000}));
    f.exchange(544, there_and_back);
    REQUIRE(f.latency() == thought);
}

TEST_CASE("ledger: a link that small messages were late on is thought better of once others have had the traffic") {
    Books f;
    const auto thought = f.latency();
    for (int i = 0; i < 8; ++i) f.exchange(64, base::millisecond);  // somebody was starting
    REQUIRE(f.latency() == sched::to_ticks(base::millisecond) / 2);
    // Traffic that shows nothing of this link's latency, as what another one takes.
    for (int i = 0; i < 500; ++i) {
        f.ledger.charge(*f.link, f.frame(272), f.now);
        f.exchange(272, base::millisecond / 2);
    }
    REQUIRE(f.latency() < sched::to_ticks(base::millisecond) / 4);
    REQUIRE(f.latency() > thought);
}

TEST_CASE("ledger: messages that had others before them say nothing of how late their link is") {
    Books f;
    f.ledger.refresh(*f.talk, f.now);
    const auto thought = f.talk->candidates.front().cost.latency;
    for (std::uint32_t sent = 2; sent <= 20; sent += 2) {
        f.ledger.charge(*f.link, f.frame(544), f.now);
        f.ledger.charge(*f.link, f.frame(544), f.now);
        f.now += 20'000;
        f.take(sent);
    }
    f.ledger.refresh(*f.talk, f.now);
    REQUIRE(f.talk->candidates.front().cost.latency == thought);
}

TEST_CASE("ledger: the frame that is compared with its prediction may have been answered before it was charged") {
    Books f;
    f.ledger.refresh(*f.talk, f.now);
    static_cast<void>(f.put_off(f.frame()));  // number 0 is noted
    f.now += there_and_back;
    f.hear(1);
    for (int i = 0; i < 3; ++i) static_cast<void>(f.put_off(f.frame()));
    f.now += base::millisecond;  // when it is charged says nothing of when it was there
    f.hear(4);
    f.ledger.charge_late();
    f.take(4);
    const auto& traffic = f.peers[f.link->peer].traffic[0];
    REQUIRE(traffic.timed_frames == 1);
    REQUIRE(traffic.real_ns < there_and_back);
    REQUIRE(traffic.predicted_ns > 0);
}

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <vector>

#include "forwarding_rail.hpp"
#include "rails/ledger.hpp"
#include "transports/sim/fabric.hpp"

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
    KeepingUp keeping_up;
    std::unique_ptr<sched::Policy> policy = sched::make_policy("vft", 1);
    Ledger ledger{1, *policy, peers, links, looks, keeping_up};
    Link* link = &links.add(0, {.index = 0, .generation = 1});
    Conversation* talk = nullptr;
    base::Nanoseconds now = base::second;

    Books() {
        link->peer = peers.of_instance(7, no_rank);
        link->state = LinkState::live;
        auto& known = peers[link->peer];
        known.talk = std::make_unique<Conversation>(pool);
        known.traffic = std::make_unique<Traffic[]>(1);
        link->traffic = known.traffic.get();
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
        talk->session.enter(made, {});
        made.link = link->slot;
        made.sent = now;
        return made;
    }
    bool put_off(Frame& one) { return !ledger.put_off(one) || ledger.follow(*link, *talk, one, now); }
    /// The peer has everything before `ack`, says a frame of its own.
    void hear(std::uint32_t ack) {
        REQUIRE(talk->session.hear(ack) == Session::Hearing::news);
        ledger.heard(*link, *talk, {.type = FrameType::eager, .ack = ack}, now);
    }
    void take(std::uint32_t ack) {
        const FrameHeader header{.type = FrameType::eager, .ack = ack};
        {
            Ledger::Taking taking(ledger, *link, header, now);
            const auto each = [&](Frame& one) {
                taking(one);
                pool.give(&one);
            };
            REQUIRE(talk->session.acknowledged(ack, {}, each));
        }
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
    REQUIRE(f.link->underway.unacknowledged() == 5 * 64);
    f.take(3);
    REQUIRE(f.backlog() == 2 * 64);
    f.take(5);
    REQUIRE(f.backlog() == 0);
    REQUIRE(f.link->underway.unacknowledged() == 0);
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
    REQUIRE(f.link->underway.unacknowledged() == 0);
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

namespace {

/// One message after the other, each of which takes as long as it does.
struct Timing : Books {
    void send(base::Nanoseconds there, base::Nanoseconds back, std::uint32_t bytes = 4096) {
        Frame& one = frame(bytes);
        ledger.time(*link, one, now);
        timed = (one.flags & frame_flag::timed) != 0;
        ledger.charge(*link, one, now);
        const Arrival arrived{.at = now + there + peers_zero};
        const auto seq = one.seq;
        now += there + back;
        const FrameHeader answer{.type = FrameType::ack, .flags = frame_flag::timed, .seq = seq};
        const auto* learnt = timed ? ledger.timed(*link, answer, arrived, now) : nullptr;
        take(seq + 1);
        if (learnt != nullptr) ledger.learn_from_timed(*link, *learnt, now);
        now += 10'000;
    }
    /// G as the policy is told it, in ns.
    [[nodiscard]] double per_byte() {
        ledger.refresh(*talk, now);
        return sched::to_ns(talk->candidates.front().cost.per_byte);
    }

    static constexpr base::Nanoseconds peers_zero = 123'456'789'000;
    bool timed = false;
};

}  // namespace

TEST_CASE("ledger: a message that its rail held up shows the rate, and one whose answer was held up does not") {
    const bool on_the_way_there = GENERATE(true, false);
    Timing f;
    for (int i = 0; i < 4; ++i) f.send(5000, 5000);
    REQUIRE(f.per_byte() < 1);
    const auto end = f.now + 20 * base::millisecond;
    while (f.now < end) f.send(on_the_way_there ? 350'000 : 5000, on_the_way_there ? 5000 : 350'000);
    if (on_the_way_there) {
        CHECK(f.per_byte() == Approx(360'000.0 / 4096).epsilon(0.1));
    } else {
        CHECK(f.per_byte() < 1);
    }
}

TEST_CASE("ledger: what lone messages of some size are late by counts as latency of their link") {
    Timing f;
    const auto send = [&](base::Nanoseconds there, base::Nanoseconds back) {
        f.now += base::millisecond;
        f.send(there, back, 544);
        REQUIRE(f.timed);
    };
    const auto thought = f.latency();
    send(300, 300);
    for (int i = 0; i < 4; ++i) send(300, 20'000);  // the answers are
    REQUIRE(f.latency() == thought);
    for (int i = 0; i < 3; ++i) send(20'000, 300);
    REQUIRE(f.latency() == thought);
    send(20'000, 300);
    REQUIRE(f.latency() >= thought + sched::to_ticks(base::Nanoseconds{19'000}));
    REQUIRE(f.latency() <= thought + sched::to_ticks(base::Nanoseconds{20'000}));
    send(300, 300);
    REQUIRE(f.latency() == thought);
}

TEST_CASE("ledger: a link is asked now and then when a frame came, and sooner when more waits there") {
    Timing f;
    int asked = 0;
    const auto end = f.now + 10 * base::millisecond;
    while (f.now < end) {
        f.send(5000, 5000);
        asked += f.timed ? 1 : 0;
    }
    CHECK(asked >= 9);
    CHECK(asked <= 11);
    f.now += base::millisecond;
    std::vector<Frame*> row;
    for (int i = 0; i < 64; ++i) {
        row.push_back(&f.frame(4096));
        f.ledger.time(*f.link, *row.back(), f.now);
        f.ledger.charge(*f.link, *row.back(), f.now);
    }
    const auto marked =
        std::ranges::count_if(row, [](const Frame* one) { return (one->flags & frame_flag::timed) != 0; });
    CHECK(marked == 6);  // the first, and each that has more than twice as much before it as the last one
    f.take(row.back()->seq + 1);
}

namespace {

/// Two links, the first of which has a rail that tells what has not reached the other host.
struct Landing : Books {
    class TellingRail : public ForwardingRail {
    public:
        using ForwardingRail::ForwardingRail;
        [[nodiscard]] std::optional<std::uint64_t> underway(transports::LinkId) noexcept override { return left; }
        std::optional<std::uint64_t> left;
    };

    Landing() {
        Link& other = links.add(0, {.index = 1, .generation = 1});
        other.peer = link->peer;
        other.state = LinkState::live;
        other.traffic = link->traffic;
        other.over_rail = link->over_rail = &rail;
        talk->links.push_back(other.slot);
        talk->candidates.push_back(talk->candidates.front());
        talk->costs.push_back(talk->costs.front());
    }
    void send(int count) {
        for (int i = 0; i < count; ++i) ledger.charge(*link, frame(4096), now);
        sent += static_cast<std::uint32_t>(count);
    }
    void look() {
        now += base::millisecond;
        ledger.refresh(*talk, now);
    }

    transports::sim::Fabric fabric;
    TellingRail rail{fabric.open("a", transports::sim::RailOptions{})};
    std::uint32_t sent = 0;
};

}  // namespace

TEST_CASE("ledger: what has landed waits for the peer, and not on the rail") {
    Landing f;
    f.send(16);
    f.look();
    CHECK(f.backlog() == 16 * 4096);
    f.rail.left = 4096;
    f.link->queued_bytes = 8192;  // not even posted
    f.look();
    CHECK(f.backlog() == 3 * 4096);
    CHECK(f.link->underway.unacknowledged() == 16 * 4096);
    f.send(1);
    CHECK(f.backlog() == 4 * 4096);
    f.take(15);
    CHECK(f.backlog() == 2 * 4096);
    f.take(17);
    CHECK(f.backlog() == 0);
    CHECK(f.link->underway.unacknowledged() == 0);
}

TEST_CASE("ledger: what has landed and goes elsewhere all the same is taken off once") {
    Landing f;
    std::vector<Frame*> frames;
    for (int i = 0; i < 4; ++i) {
        frames.push_back(&f.frame(4096));
        f.ledger.charge(*f.link, *frames.back(), f.now);
    }
    f.rail.left = 4096;
    f.look();
    REQUIRE(f.backlog() == 4096);
    for (auto* one : frames) f.ledger.uncharge(*one, f.now);
    CHECK(f.backlog() == 0);
    CHECK(f.link->underway.unacknowledged() == 0);
    f.take(4);
}

TEST_CASE("ledger: a peer that leaves what has landed does not make its rail slow") {
    const bool tells = GENERATE(true, false);
    Landing f;
    f.send(64);
    for (int i = 0; i < 30; ++i) {
        f.send(32);
        if (tells) f.rail.left = 0;
        f.look();
        f.look();
        f.take(f.sent - 64);  // it takes its time
    }
    f.look();
    const auto per_byte = sched::to_ns(f.talk->candidates.front().cost.per_byte);
    if (tells) {
        CHECK(per_byte < 0.1);  // as the model has it
    } else {
        CHECK(per_byte == Approx(2e6 / (32 * 4096)).epsilon(0.1));
    }
    f.take(f.sent);
}

TEST_CASE("ledger: the end of a burst shows the rate, though only its beginning was asked for") {
    // A shaper passes the first message of each burst at once; for the last one it has saved too little.
    const bool by_host = GENERATE(false, true);
    const base::Nanoseconds last_took = 600'000;
    Books f;
    const auto cost = [&] {
        f.ledger.refresh(*f.talk, f.now);
        return sched::to_ns(f.talk->candidates.front().cost.per_byte);
    };
    ArrivalTimes times;
    const auto burst = [&] {
        Frame& first = f.frame(2000);
        Frame& last = f.frame(2000);
        for (Frame* one : {&first, &last}) {
            one->payload = one->bytes;
            f.ledger.time(*f.link, *one, f.now);
            f.ledger.charge(*f.link, *one, f.now);
        }
        REQUIRE((first.flags & frame_flag::timed) != 0);
        REQUIRE((last.flags & frame_flag::timed) == 0);
        const auto sent = f.now;
        f.now += 2000;
        times.timed = {.at = sent + 1000, .by_host = by_host};
        const FrameHeader answer{.type = FrameType::ack, .flags = frame_flag::timed, .seq = first.seq};
        f.ledger.learn_from_before(*f.link, answer, times, f.now);
        const auto* timed = f.ledger.timed(*f.link, answer, times.timed, f.now);
        const auto ack = last.seq + 1;
        times.before = {.at = sent + last_took, .by_host = by_host};
        times.before_seq = last.seq;
        f.now = std::max(f.now, sent + last_took + 1000);
        f.take(ack);
        if (timed != nullptr) f.ledger.learn_from_timed(*f.link, *timed, f.now);
        f.now = sent + base::millisecond + 10'000;
    };
    for (int i = 0; i < 4; ++i) burst();
    CHECK(cost() < 1);
    for (int i = 0; i < 40; ++i) burst();
    CHECK(cost() == Approx(1'010'000.0 / 4000).epsilon(0.15));
}

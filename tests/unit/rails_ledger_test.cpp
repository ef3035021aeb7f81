#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "forwarding_rail.hpp"
#include "rails_books.hpp"
#include "transports/sim/fabric.hpp"

using namespace railmux;
using namespace railmux::rails;
using rails::test::Books;
using rails::test::step;
using rails::test::there_and_back;

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

TEST_CASE("ledger: leads to a peer by idle rails end when something heavy is handed to one that leads there") {
    Books f;
    const auto other = f.peers.of_instance(8, no_rank);
    auto& known = f.peers[other];
    known.talk = std::make_unique<Conversation>(f.pool);
    const std::uint32_t rail = GENERATE(0U, 5U);
    known.talk->candidates = {sched::Candidate{.rail = 9}, sched::Candidate{.rail = rail}};
    const bool late = GENERATE(false, true);
    const auto hand_over = [&](std::uint32_t bytes) {
        Frame& one = f.frame(bytes);
        if (late) {
            REQUIRE(f.put_off(one));
        } else {
            f.ledger.charge(*f.link, one, f.now);
        }
    };
    f.ledger.leads_by_idle(other);
    known.talk->leads.light.until = 1;
    hand_over(64);
    CHECK(f.ledger.leads_alone(other));
    hand_over(1000);
    CHECK(f.ledger.leads_alone(other) == (rail != 0));
    CHECK((known.talk->leads.light.until > 0) == (rail != 0));
    f.ledger.leads_by_idle(f.link->peer);
    CHECK_FALSE(f.ledger.leads_alone(other));
    CHECK(f.ledger.leads_alone(f.link->peer) == (rail == 0));
    f.ledger.charge_late();
    f.take(2);
}

TEST_CASE("ledger: what is put off may be much") {
    Books f;
    std::uint64_t bytes = 0;
    std::uint32_t end = 0;
    for (int i = 0; i < 6; ++i) {
        CHECK(f.ledger.much_late() == (bytes > 4096));
        Frame& one = f.frame(1000);
        end = one.seq + 1;
        static_cast<void>(f.put_off(one));
        bytes += 1000;
    }
    f.ledger.charge_late();
    CHECK_FALSE(f.ledger.much_late());
    f.take(end);
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

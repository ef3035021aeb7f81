// What the ledger learns from bursts, of which the peer says when the first came, and with the next one when the last did.
#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "rails_books.hpp"

using namespace railmux;
using namespace railmux::rails;
using rails::test::Books;

namespace {

/// Bursts of two messages over a shaper that passes the first at once; for the last it has saved too little. The first is asked
/// for, the last is told of with what comes next.
struct Bursts : Books {
    bool by_host = true;
    bool follows = false;              // the last one goes without a choice, and is charged when it has left
    std::optional<bool> last_by_host;  // nothing: as the first
    base::Nanoseconds last_took = 600'000;
    ArrivalTimes times{};

    void one(base::Nanoseconds rest = base::millisecond + 10'000) {
        Frame& first = put(2000);
        Frame& last = follows ? follow(2000) : put(2000);
        REQUIRE((first.flags & frame_flag::timed) != 0);
        REQUIRE((last.flags & frame_flag::timed) == 0);
        const auto sent = now;
        const auto ack = last.seq + 1;
        answer(first.seq, sent + 1000);
        times.before = {.at = sent + last_took, .by_host = last_by_host.value_or(by_host)};
        times.before_seq = last.seq;
        now = std::max(now, sent + last_took + 1000);
        take(ack);
        now = sent + rest;
    }
    Frame& put(std::uint32_t bytes) {
        Frame& made = frame(bytes);
        made.payload = bytes;
        hand_over(made);
        return made;
    }
    Frame& follow(std::uint32_t bytes) {
        Frame& made = frame(bytes);
        made.payload = bytes;
        REQUIRE_FALSE(ledger.due(*link, made, now));
        static_cast<void>(put_off(made));
        ledger.charge_late();
        return made;
    }
    /// A rail that nothing goes over.
    void add_another() {
        auto& other = links.add(0, {.index = 1, .generation = 1});
        other.peer = link->peer;
        other.place = 1;
        other.state = LinkState::live;
        talk->links.push_back(other.slot);
        talk->candidates.push_back(talk->candidates.front());
        talk->costs.push_back(talk->costs.front());
    }
    /// The next few messages are not asked for.
    void ask() {
        const auto seq = put(2000).seq;
        answer(seq, now + 1000);
        take(seq + 1);
    }
    void answer(std::uint32_t seq, base::Nanoseconds came) {
        now += 2000;
        times.timed = {.at = came, .by_host = by_host};
        const FrameHeader header{.type = FrameType::ack, .flags = frame_flag::timed, .seq = seq};
        ledger.learn_from_before(*link, header, times, now);
        if (const auto timed = ledger.timed(*link, header, times.timed, now))
            ledger.learn_from_timed(*link, *timed, now);
    }
    [[nodiscard]] double per_byte() {
        ledger.refresh(*talk, now);
        return sched::to_ns(talk->candidates.front().cost.per_byte);
    }
};

}  // namespace

TEST_CASE("ledger: the end of a burst shows the rate, though only its beginning was asked for") {
    Bursts f;
    f.by_host = GENERATE(false, true);
    f.follows = GENERATE(false, true);
    if (f.follows) f.add_another();
    for (int i = 0; i < 4; ++i) f.one();
    CHECK(f.per_byte() < 1);
    for (int i = 0; i < 40; ++i) f.one();
    CHECK(f.per_byte() == Approx(1'010'000.0 / 4000).epsilon(0.15));
}

TEST_CASE("ledger: what is charged when it has left was given to its rail when it was") {
    Bursts f;
    f.add_another();
    f.ask();
    const auto decided = f.now;
    enum class Where : std::uint8_t { posted, refused, at_once, waits };
    const auto where = GENERATE(Where::posted, Where::refused, Where::at_once, Where::waits);
    Frame& light = f.frame(64);  // the train begins with it
    light.queued = where != Where::at_once;
    if (light.queued) f.link->outbox.push(&light);
    static_cast<void>(f.put_off(light));
    f.now += 2000;
    Frame& heavy = f.frame(3000);
    heavy.payload = 3000;
    REQUIRE_FALSE(f.ledger.due(*f.link, heavy, f.now));
    heavy.queued = where != Where::at_once;
    if (heavy.queued) f.link->outbox.push(&heavy);
    static_cast<void>(f.put_off(heavy));
    if (heavy.queued) Ledger::await_posting(*f.link);
    f.now += 10'000;
    f.link->refused = where == Where::refused;
    if (where == Where::waits) f.ledger.charge_late();
    if (where != Where::at_once) f.post();
    if (where != Where::waits) f.ledger.charge_late();
    CHECK_FALSE(f.link->timed_waits);
    const auto& noted = f.link->latest;
    REQUIRE(noted.seq == heavy.seq);
    const bool given = where == Where::posted || where == Where::waits;
    CHECK(noted.sent == (given ? f.now : heavy.sent));
    CHECK(noted.idle == (given ? f.now : decided));
    CHECK(noted.ahead == 3064);
    CHECK(noted.since_idle == 3064);
    CHECK(noted.messages == 2);
    while (!f.link->outbox.empty()) f.link->outbox.pop();
    f.take(heavy.seq + 1);
}

TEST_CASE("ledger: a train whose first frames have left does not begin with the next of what was decided together") {
    Bursts f;
    f.add_another();
    f.ask();
    const auto decided = f.now;
    const bool late = GENERATE(true, false);
    std::vector<Frame*> parts{&f.frame(1000), &f.frame(2000)};
    for (Frame* part : parts) {
        part->payload = part->bytes;
        part->sent = decided;
        part->queued = true;
        f.link->outbox.push(part);
        Ledger::await_posting(*f.link);
        if (late) {
            static_cast<void>(f.put_off(*part));
        } else {
            f.ledger.charge(*f.link, *part, decided);
            f.ledger.note(*f.link, *part, Ledger::Asked::no);
        }
        f.now += 10'000;
        f.post();
    }
    if (late) f.ledger.charge_late();
    REQUIRE(f.link->latest.seq == parts.back()->seq);
    CHECK(f.link->latest.sent == f.now);
    CHECK(f.link->latest.idle == decided + (late ? 0 : 10'000));  // nobody remembers, or when the first of it left
    CHECK(f.link->latest.since_idle == 3000);
    f.take(parts.back()->seq + 1);
}

TEST_CASE("ledger: while hosts tell, when a process looked shows nothing") {
    Bursts f;
    f.last_by_host = false;
    for (int i = 0; i < 40; ++i) f.one();
    CHECK(f.per_byte() < 1);
}

TEST_CASE("ledger: where hosts tell no more, when a process looked shows soon what has changed") {
    Bursts f;
    for (int i = 0; i < 40; ++i) f.one();
    const auto before = f.per_byte();
    f.by_host = false;
    f.last_took *= 10;
    for (int i = 0; i < 16; ++i) f.one(11 * base::millisecond);
    CHECK(f.per_byte() > 5 * before);
}

TEST_CASE("ledger: a few bytes that are asked for between two bursts lose nothing of the end of the first") {
    Bursts f;
    for (int i = 0; i < 40; ++i) {
        f.one();
        Frame& small = f.put(64);
        const auto seq = small.seq;
        REQUIRE((small.flags & frame_flag::timed) != 0);
        f.answer(seq, f.now + 1000);
        f.take(seq + 1);
        f.now += base::millisecond;
    }
    CHECK(f.per_byte() == Approx(2'010'000.0 / 4064).epsilon(0.15));
}

TEST_CASE("ledger: how a burst ended long ago is not asked: the clocks have gone apart since") {
    Bursts f;
    for (int i = 0; i < 40; ++i) f.one(base::second / 2);
    CHECK(f.per_byte() < 1);
}

TEST_CASE("ledger: what another link of the rail was given has not come when a frame of this one has") {
    Bursts f;
    f.talk->costs[0].per_byte = sched::to_ticks(8.0);
    f.talk->costs[0].slope = sched::to_ticks(8.0);
    const auto first = f.put(64).seq;
    f.answer(first, f.now + 1000);  // so the clock over there is known
    f.take(first + 1);
    Link& other = f.links.add(0, {.index = 1, .generation = 1});
    other.peer = f.link->peer;
    other.state = LinkState::live;
    Frame& stuck = f.frame(1024 * 1024);
    stuck.link = other.slot;
    f.now += base::millisecond;
    f.ledger.charge(other, stuck, f.now);
    for (int i = 0; i < 10; ++i) {
        const auto seq = f.put(16 * 1024).seq;
        const auto came = f.now + 131'000 + 1000;
        f.now += 130'000;
        f.answer(seq, came);
        f.now += base::millisecond;
    }
    CHECK(f.per_byte() > 7);
    CHECK_FALSE(f.ledger.pace(0).saves_up(f.now));
}

TEST_CASE("ledger: what the peer's traffic has shown of a rail counts where ours has shown nothing, or is in doubt") {
    Bursts f;
    const auto shown = [&] {
        f.ledger.refresh(*f.talk, f.now);
        return sched::to_ns(f.talk->candidates.front().shown);
    };
    f.link->remote_rail = 5;
    CHECK(f.ledger.next_rate_to_tell(*f.talk).per_byte == 0);
    CHECK(shown() == 0);
    f.ledger.heard_rate(*f.talk, {.rail = 4, .remote_rail = 0, .per_byte = sched::to_ticks(80.0)});  // of another link
    f.ledger.heard_rate(*f.talk, {.rail = 5, .remote_rail = 1, .per_byte = sched::to_ticks(80.0)});  // and another
    CHECK(shown() == 0);
    f.ledger.heard_rate(*f.talk, {.rail = 5, .remote_rail = 0, .per_byte = sched::to_ticks(1e6)});
    CHECK(shown() == Approx(1000));  // no rail that counts is slower
    f.ledger.heard_rate(*f.talk, {.rail = 5, .remote_rail = 0, .per_byte = sched::to_ticks(1e3)});
    for (int i = 0; i < 30; ++i) f.one();
    REQUIRE(f.ledger.pace(0).doubtful());
    REQUIRE(f.ledger.pace(0).sustained() > 0);
    CHECK(shown() == Approx(1000));
    f.ledger.heard_rate(*f.talk, {.rail = 5, .remote_rail = 0, .per_byte = 1});
    CHECK(shown() == Approx(sched::to_ns(f.ledger.pace(0).sustained())));
    f.ledger.measured(0, sched::to_ticks(8.0));
    f.ledger.heard_rate(*f.talk, {.rail = 5, .remote_rail = 0, .per_byte = sched::to_ticks(80.0)});
    CHECK(shown() == Approx(8));
    const auto told = f.ledger.next_rate_to_tell(*f.talk);
    CHECK(told.rail == 0);
    CHECK(told.remote_rail == 5);
    CHECK(sched::to_ns(told.per_byte) == Approx(8));
    Link& other = f.links.add(0, {.index = 1, .generation = 1});
    other.remote_rail = 9;
    f.talk->links.push_back(other.slot);
    const auto next = f.ledger.next_rate_to_tell(*f.talk).remote_rail;
    CHECK(next != f.ledger.next_rate_to_tell(*f.talk).remote_rail);
    CHECK(next == f.ledger.next_rate_to_tell(*f.talk).remote_rail);
    f.talk->links.clear();
    CHECK(f.ledger.next_rate_to_tell(*f.talk).per_byte == 0);
}

// What the ledger learns from frames of which the peer says when they came.
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

/// One message after the other, each of which takes as long as it does.
struct Timing : Books {
    void send(base::Nanoseconds there, base::Nanoseconds back, std::uint32_t bytes = 4096) {
        Frame& one = frame(bytes);
        ledger.refresh(*talk, now);
        hand_over(one, true);
        timed = (one.flags & frame_flag::timed) != 0;
        now += waits;
        post();
        const Arrival arrived{.at = now + there + peers_zero};
        const auto seq = one.seq;
        now += there + back;
        const FrameHeader answer{.type = FrameType::ack, .flags = frame_flag::timed, .seq = seq};
        const auto learnt = timed ? ledger.timed(*link, answer, arrived, now) : std::nullopt;
        take(seq + 1);
        if (learnt) ledger.learn_from_timed(*link, *learnt, now);
        now += 10'000;
    }
    /// G as the policy is told it, in ns.
    [[nodiscard]] double per_byte() {
        ledger.refresh(*talk, now);
        return sched::to_ns(talk->candidates.front().cost.per_byte);
    }

    static constexpr base::Nanoseconds peers_zero = 123'456'789'000;
    base::Nanoseconds waits = 0;  // until its rail is given it
    bool timed = false;
};

}  // namespace

TEST_CASE("ledger: a message that waits until its rail is given it is not late for that, unless the rail was full") {
    Timing f;
    for (int i = 0; i < 4; ++i) f.send(5000, 5000);
    REQUIRE(f.per_byte() < 1);
    f.waits = 350'000;
    f.link->refused = GENERATE(false, true);
    const auto end = f.now + 20 * base::millisecond;
    while (f.now < end) f.send(5000, 5000);
    if (f.link->refused) {
        CHECK(f.per_byte() == Approx(360'000.0 / 4096).epsilon(0.1));
    } else {
        CHECK(f.per_byte() < 1);
    }
}

TEST_CASE("ledger: a train begins when its rail is given the first of it") {
    Timing f;
    enum class Where : std::uint8_t { waits, given_in_part, given };
    const auto where = GENERATE(Where::waits, Where::given_in_part, Where::given);
    const auto decided = f.now;
    Frame& first = f.frame(2000);
    f.hand_over(first, where != Where::given);
    if (where == Where::given_in_part) first.posted = 1;
    f.now += 10'000;
    Frame& second = f.frame(8000);
    f.hand_over(second, true);
    REQUIRE(f.link->timed.seq == second.seq);
    f.now += 10'000;
    REQUIRE(f.link->timed_waits);
    Ledger::posting(*f.link, f.now);
    CHECK(f.link->timed.sent == f.now);
    CHECK(f.link->timed.idle == (where == Where::waits ? f.now : decided));
    f.now += 10'000;
    Ledger::posting(*f.link, f.now);  // nothing of what is timed waits any more
    CHECK(f.link->timed.sent == f.now - 10'000);
    while (!f.link->outbox.empty()) f.link->outbox.pop();
    f.take(second.seq + 1);
}

TEST_CASE("ledger: a message that its rail held up shows the rate, and one whose answer was held up does not") {
    const bool on_the_way_there = GENERATE(true, false);
    Timing f;
    for (int i = 0; i < 4; ++i) f.send(5000, 5000);
    REQUIRE(f.per_byte() < 1);
    const auto end = f.now + 20 * base::millisecond;
    while (f.now < end) f.send(on_the_way_there ? 350'000 : 5000, on_the_way_there ? 5000 : 350'000);
    if (on_the_way_there) {
        CHECK(f.per_byte() == Approx(360'000.0 / 4096).epsilon(0.1));
        CHECK(f.latency() < sched::to_ticks(base::Nanoseconds{10'000}));  // the rate explains what they were late by
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

TEST_CASE("ledger: of light messages that leave together the last is timed, and shows what their rail does to bursts") {
    Timing f;
    // Eight that follow a lead; true: the last of them was timed.
    const auto burst = [&](base::Nanoseconds there) {
        Frame* last = nullptr;
        for (int i = 0; i < 8; ++i) {
            last = &f.frame(88);
            f.link->outbox.push(last);
            static_cast<void>(f.put_off(*last));
        }
        f.ledger.time_gathered(*f.link, f.now);
        while (!f.link->outbox.empty()) f.link->outbox.pop();
        const bool timed = (last->flags & frame_flag::timed) != 0;
        if (timed) Ledger::posting(*f.link, f.now);
        f.ledger.charge_late();
        const auto seq = last->seq;
        f.now += there;
        const Arrival arrived{.at = f.now + Timing::peers_zero};
        f.now += 300;
        const FrameHeader answer{.type = FrameType::ack, .flags = frame_flag::timed, .seq = seq};
        const auto learnt = timed ? f.ledger.timed(*f.link, answer, arrived, f.now) : std::nullopt;
        f.take(seq + 1);
        if (learnt) f.ledger.learn_from_timed(*f.link, *learnt, f.now);
        return timed;
    };
    const auto thought = f.latency();
    for (int i = 0; i < 5; ++i, f.now += 4 * base::millisecond) CHECK(burst(300));
    CHECK(f.latency() == thought);
    for (int i = 0; i < 4; ++i, f.now += 4 * base::millisecond) {
        CHECK(f.latency() == thought);
        CHECK(burst(20'000));
    }
    CHECK(f.latency() >= thought + sched::to_ticks(base::Nanoseconds{18'000}));
    SECTION("not one that leaves by itself") {
        Frame& lone = f.frame(88);
        f.link->outbox.push(&lone);
        f.ledger.time_gathered(*f.link, f.now);
        CHECK((lone.flags & frame_flag::timed) == 0);
        f.link->outbox.pop();
        f.ledger.charge(*f.link, lone, f.now);
        f.take(lone.seq + 1);
    }
    SECTION("once in some milliseconds") {
        CHECK(burst(300));
        for (int i = 0; i < 10; ++i) CHECK_FALSE(burst(300));
    }
    SECTION("and when they are late no more that is over") {
        CHECK(burst(300));
        CHECK(f.latency() == thought);
    }
    SECTION("not another one while one waits for its answer") {
        f.link->timed_end.awaited = true;
        f.link->timed_end.sent = f.now;
        f.now += 4 * base::millisecond;
        CHECK_FALSE(burst(300));
    }
    CHECK(f.ledger.balanced());
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
        f.hand_over(*row.back());
    }
    const auto marked =
        std::ranges::count_if(row, [](const Frame* one) { return (one->flags & frame_flag::timed) != 0; });
    CHECK(marked == 6);  // the first, and each that has more than twice as much before it as the last one
    f.take(row.back()->seq + 1);
}

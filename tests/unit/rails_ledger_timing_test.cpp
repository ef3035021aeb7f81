// What the ledger learns from frames of which the peer says when they came.
#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
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

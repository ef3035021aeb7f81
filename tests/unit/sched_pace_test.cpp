#include <catch2/catch.hpp>

#include "sched_flow.hpp"
#include "sched_sizes.hpp"

using namespace railmux;
using sched::RailSpec;
using sched::test::check_near;
using sched::test::Flow;
using test::kib;
using test::mib;

namespace {

/// The rail's time for a byte of messages of `bytes`, its gaps included.
double true_per_byte(const RailSpec& spec, double bytes) { return spec.per_byte_ns + spec.gap_ns / bytes; }

}  // namespace

TEST_CASE("a constant rate is found within 3 %, whatever it is and whatever was thought before", "[sched][pace]") {
    // 100 Mbit/s to 10 Gbit/s: a prior between them is wrong by 100 in one way or the other. Pace has none.
    for (const double per_byte : {80.0, 8.0, 2.0, 0.8}) {
        const RailSpec spec{.per_byte_ns = per_byte};
        Flow flow(spec, 256 * kib, 16 * kib);
        flow.bytes(mib);
        check_near(flow.per_byte_ns(), true_per_byte(spec, 16 * kib), 0.03);
    }
}

TEST_CASE("small messages show the rate with their gaps", "[sched][pace]") {
    const RailSpec spec{.gap_ns = 2000};
    Flow flow(spec, 64 * kib, kib);
    flow.bytes(4 * mib);
    check_near(flow.per_byte_ns(), true_per_byte(spec, kib), 0.03);
}

TEST_CASE("a rate that changes tenfold is followed within 100 ms or 1 MiB", "[sched][pace]") {
    const auto [from, to] = GENERATE(std::pair{8.0, 80.0}, std::pair{80.0, 8.0});
    Flow flow({.per_byte_ns = from}, 256 * kib, 16 * kib);
    flow.time(200 * base::millisecond);
    flow.wire.change_rate(to);
    flow.time(100 * base::millisecond);
    check_near(flow.per_byte_ns(), to, 0.05);
}

TEST_CASE("a token bucket of 256 KiB is seen through after 1 MiB", "[sched][pace]") {
    Flow flow({.burst_bytes = 256.0 * kib}, 256 * kib, 16 * kib);
    flow.bytes(mib);
    check_near(flow.per_byte_ns(), 8, 0.10);
}

TEST_CASE("a peer away for 5 ms does not look like a slow rail", "[sched][pace]") {
    Flow flow({}, 256 * kib, 16 * kib);
    flow.time(100 * base::millisecond);
    const auto before = flow.per_byte_ns();
    flow.wire.away(flow.now() + 5 * base::millisecond);
    for (int i = 0; i < 20; ++i) {
        flow.time(base::millisecond);
        check_near(flow.per_byte_ns(), before, 0.05);
    }
}

TEST_CASE("acknowledgements kept back for 100 us do not bias the rate", "[sched][pace]") {
    const auto hold = GENERATE(base::Nanoseconds{0}, 30 * base::microsecond, 100 * base::microsecond);
    const auto window = GENERATE(64 * kib, 256 * kib, mib);
    Flow flow({.ack_hold = hold}, window, 16 * kib);
    flow.bytes(4 * mib);
    check_near(flow.per_byte_ns(), true_per_byte({}, 16 * kib), 0.05);
}

TEST_CASE("acknowledgements that wait behind what the peer sends do not make a rail slow", "[sched][pace]") {
    // A millisecond of work is kept on the way, and all of it has landed for as long before that is known.
    RailSpec spec{.ack_hold = 0};
    Flow flow(spec, 128 * kib, 16 * kib);
    flow.bytes(4 * mib);
    spec.latency_ns = 1e6;
    flow.wire.become(spec);
    for (int i = 0; i < 200; ++i) {
        flow.pace.told_after(2 * base::millisecond);
        flow.time(base::millisecond);
    }
    check_near(flow.per_byte_ns(), true_per_byte(spec, 16 * kib), 0.05);

    // A rail that is slow in truth is so with more on the way than that hides.
    spec.per_byte_ns *= 10;
    Flow more(spec, mib, 16 * kib);
    more.time(base::millisecond);
    more.pace.told_after(2 * base::millisecond);
    more.time(100 * base::millisecond);
    check_near(more.per_byte_ns(), spec.per_byte_ns, 0.05);
}

TEST_CASE("a sender that waits for each answer teaches nothing", "[sched][pace]") {
    Flow flow({.latency_ns = 50'000}, 1, 256);
    flow.bytes(mib);
    CHECK(flow.pace.per_byte() == 0);
}

TEST_CASE("an idle time between busy ones does not count", "[sched][pace]") {
    Flow flow({}, 256 * kib, 16 * kib);
    for (int i = 0; i < 20; ++i) {
        flow.bytes(mib);
        flow.idle(20 * base::millisecond);
    }
    check_near(flow.per_byte_ns(), true_per_byte({}, 16 * kib), 0.05);
}

TEST_CASE("backlog balances on every path", "[sched][pace]") {
    sched::Pace pace;
    pace.sent(100, 0);
    pace.sent(50, 10);
    CHECK(pace.silent(30) == 30);
    pace.delivered(100);
    pace.settle(40, 0);
    CHECK(pace.backlog() == 50);
    pace.lost(50);
    CHECK(pace.backlog() == 0);
    CHECK(pace.silent(1000) == 0);
}

namespace {

/// G where we get 100 B of a rail each us, with 100 KB of ours and `backlog` bytes of others' on it, who get `theirs` B.
double shared_per_byte_ns(std::uint64_t backlog, std::uint64_t theirs) {
    sched::Pace pace;
    sched::Others others{.backlog = backlog, .gone = 12'345};
    base::Nanoseconds now = 0;
    pace.sent(100'000, now);
    for (int i = 0; i < 1000; ++i) {
        now += 100 * base::microsecond;
        others.gone += 100 * theirs;
        pace.delivered(10'000);
        pace.settle(now, now, others);
        pace.sent(10'000, now);
    }
    CHECK(pace.own_per_byte() == sched::to_ticks(10.0));
    return static_cast<double>(pace.per_byte()) / sched::ticks_per_ns;
}

}  // namespace

TEST_CASE("what others have on a rail counts by what each look finds", "[sched][pace][node]") {
    // Looks of which only every eighth is in time: just then the others have nothing there.
    sched::Pace pace;
    sched::Others others;
    base::Nanoseconds now = 0;
    pace.sent(100'000, now);
    for (int i = 1; i < 4000; ++i) {
        const bool in_time = i % 8 == 0;
        now += 100 * base::microsecond;
        others.gone += 30'000;
        others.backlog = in_time ? 0 : 300'000;
        pace.delivered(10'000);
        pace.settle(now, now, others, {.unseen = in_time ? 0 : 100 * base::microsecond});
        pace.sent(10'000, now);
    }
    check_near(static_cast<double>(pace.per_byte()) / sched::ticks_per_ns, 2.5, 0.1);
}

TEST_CASE("what others get of a rail counts as its work", "[sched][pace][node]") {
    check_near(shared_per_byte_ns(0, 0), 10, 0.01);
    check_near(shared_per_byte_ns(100'000, 100), 5, 0.01);
    check_near(shared_per_byte_ns(300'000, 300), 2.5, 0.01);
}

TEST_CASE("... unless their backlog does not explain that we get less", "[sched][pace][node]") {
    // As much of theirs on the rail as of ours, and they get nine times as much: it is our peer that is slow.
    check_near(shared_per_byte_ns(100'000, 900), 10.0 / 3, 0.01);
    // They have nothing on it when we look.
    check_near(shared_per_byte_ns(0, 900), 10, 0.01);
}

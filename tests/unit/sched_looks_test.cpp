// Pace: what looks at a rail show of its rate, which find what has come by then, and what the host at the other end has.
#include <catch2/catch.hpp>

#include "sched_flow.hpp"
#include "sched_sizes.hpp"

using namespace railmux;
using sched::test::check_near;
using test::kib;

namespace {

/// Looks once a millisecond at what the other host has: `landed` bytes more. As much has been handed over just before, so that
/// 64 KiB are left. Returns the rate learnt.
sched::Ticks looked_at(std::uint64_t landed, std::uint64_t unposted) {
    sched::Pace pace;
    base::Nanoseconds now = 0;
    pace.sent(64 * kib, now);
    for (int i = 0; i < 20; ++i) {
        now += base::millisecond;
        pace.sent(landed, now);
        pace.delivered(landed);
        pace.settle(now, now, {}, {.exact = true, .unposted = unposted});
    }
    return pace.per_byte();
}

}  // namespace

TEST_CASE("a rail that may have been idle between two looks shows no rate by them", "[sched][pace]") {
    CHECK(looked_at(32 * kib, 0) == sched::to_ticks(base::millisecond) / (32 * kib));
    CHECK(looked_at(64 * kib, 0) == 0);         // all of it may have landed long ago
    CHECK(looked_at(64 * kib - 96, 0) == 0);    // what transports add to it is no work
    CHECK(looked_at(32 * kib, 48 * kib) == 0);  // the rail had been given too little
}

namespace {

/// A rail of `per_byte` that always has 64 KiB to do. Its host, looked at each 200 us, tells of little; what else has come is
/// known each millisecond by an acknowledgement, when nobody has looked at other rails for long, and with the look after that.
/// Returns the rate learnt.
sched::Ticks told_in_lumps(base::Nanoseconds per_byte) {
    constexpr base::Nanoseconds spacing = 200 * base::microsecond;
    const auto passes = static_cast<std::uint64_t>(spacing / per_byte);
    sched::Pace pace;
    base::Nanoseconds now = 0;
    std::uint64_t untold = 0;
    pace.sent(64 * kib, now);
    for (int look = 1; look <= 200; ++look) {
        now += spacing;
        pace.sent(passes, now);  // as much as it has passed
        untold += passes;
        const bool all = look % 5 == 0;
        const auto told = all ? untold : passes / 4;
        untold -= told;
        if (all) {
            pace.delivered(told / 2);
            pace.settle(now, now, {}, {.unseen = 10 * base::millisecond});
        }
        pace.delivered(all ? told - told / 2 : told);
        pace.settle(now, now, {}, {.exact = true});
    }
    return pace.per_byte();
}

}  // namespace

TEST_CASE("a host that tells in lumps what it has does not make its rail look slow", "[sched][pace]") {
    for (const base::Nanoseconds per_byte : {8, 20, 80}) {
        check_near(static_cast<double>(told_in_lumps(per_byte)) / sched::ticks_per_ns, static_cast<double>(per_byte),
                   0.05);
    }
}

TEST_CASE("what was delivered while nobody looked does not look like a rate", "[sched][pace]") {
    sched::Pace pace;
    base::Nanoseconds now = 0;
    for (int i = 0; i < 20; ++i) {  // a sender that looks once in 5 ms: all but the last 100 us has been acknowledged
        for (int n = 0; n < 50; ++n) pace.sent(kib, now += 100 * base::microsecond);
        pace.delivered(pace.backlog() - kib);
        pace.settle(now, now);
    }
    CHECK(pace.per_byte() == 0);
}

TEST_CASE("what had come before nobody looked for long does not prove a rate", "[sched][pace]") {
    sched::Pace pace;
    base::Nanoseconds now = base::second;
    constexpr auto late = base::millisecond;
    pace.measured(sched::to_ticks(0.8), 0);
    pace.sent(4'000'000, now);
    const auto came = [&](std::uint64_t bytes, base::Nanoseconds unseen) {
        pace.delivered(bytes);
        pace.settle(now, now, {}, {.unseen = unseen});
        pace.sent(bytes, now);
    };
    for (int round = 0; round < 200; ++round) {  // what has come is taken by two looks in a row
        now += late - 10 * base::microsecond;
        came(125'000, late);
        now += 10 * base::microsecond;
        came(1'125'000, late + 10 * base::microsecond);
        for (int look = 0; round % 20 == 0 && look < 20; ++look) {  // a while in time
            now += 50 * base::microsecond;
            came(62'500, 0);
        }
    }
    check_near(static_cast<double>(pace.per_byte()) / sched::ticks_per_ns, 0.8, 0.05);
}

TEST_CASE("what is sent while the rail may have been idle is no measure of it", "[sched][pace]") {
    // A sender that is slower than the rail, and looks so rarely that there always seems to be a backlog.
    sched::Pace pace;
    base::Nanoseconds now = base::second;
    std::uint64_t unknown = 0;
    for (int i = 0; i < 100'000; ++i) {
        pace.sent(1000, now);
        unknown += 1000;
        now += base::microsecond;
        if (i % 2000 != 1999) continue;
        pace.delivered(unknown - 100'000);  // all but what the receiver has not acknowledged yet
        unknown = 100'000;
        pace.settle(now, now);
    }
    CHECK(pace.per_byte() == 0);
}

namespace {

/// A rail of 8 ns a byte, given 512 KiB at a time in pieces that are acknowledged whole, by somebody who finds 128 KiB to be
/// left whenever he looks, and whose looks find something each time. `handing`: the part of the time that handing over takes.
/// Returns the rate learnt in that time.
sched::Ticks fed(double handing, const sched::Others& others = {}, sched::Pace pace = {},
                 base::Nanoseconds time = 400 * base::millisecond) {
    constexpr std::uint64_t piece = 128 * kib;
    constexpr base::Nanoseconds spacing = 4 * 8 * piece;
    base::Nanoseconds now = 10 * base::second;
    const auto begun = now;
    pace.sent(piece, now);
    while (now - begun < time) {
        pace.sent(4 * piece, now);
        pace.handing(static_cast<base::Nanoseconds>(handing * spacing));
        now += spacing;
        pace.delivered(4 * piece);
        pace.settle(now, now, others, {.unseen = now - begun});
    }
    return pace.per_byte();
}

/// Has seen others flood the rail beside it for a moment, too short for a window of its own.
sched::Pace beside_others() {
    sched::Pace pace;
    base::Nanoseconds now = base::second;
    sched::Others others{.backlog = 16'000 * kib};
    pace.sent(400 * kib, now);
    for (int i = 0; i < 8; ++i) {
        now += 100 * base::microsecond;
        others.gone += 2'000 * kib;
        pace.delivered(40 * kib);
        pace.settle(now, now, others, {});
    }
    pace.delivered(80 * kib);
    pace.settle(now, now, others, {});
    return pace;
}

}  // namespace

TEST_CASE("somebody who does nothing else but hand messages to a rail sees its rate", "[sched][pace]") {
    check_near(static_cast<double>(fed(0.95)) / sched::ticks_per_ns, 8, 0.03);
    CHECK(fed(0.5) == 0);                          // the rail may have been idle meanwhile
    CHECK(fed(0.95, {.backlog = 64 * kib}) == 0);  // it may be others who had it
    // One window, and nothing in it of what others did before.
    const auto after_others = fed(0.95, {.gone = 16'000 * kib}, beside_others(), 150 * base::millisecond);
    check_near(static_cast<double>(after_others) / sched::ticks_per_ns, 8, 0.03);
}

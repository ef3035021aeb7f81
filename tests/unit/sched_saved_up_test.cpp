#include "sched/saved_up.hpp"

#include <catch2/catch.hpp>

#include "sched_flow.hpp"
#include "sched_sizes.hpp"

using namespace railmux;
using sched::SavedUp;
using sched::test::check_near;
using sched::test::Flow;
using test::kib;
using test::mib;

namespace {
constexpr auto thought = sched::to_ticks(base::Nanoseconds{8});
}

TEST_CASE("what takes its time shows the rate from the first byte on", "[sched][saved_up]") {
    SavedUp saved_up;
    const auto shown = saved_up.came_through(64 * kib, 64 * kib * 5, thought);
    CHECK(shown.bytes == 64 * kib);
    CHECK(shown.time == 64 * kib * 5);
}

TEST_CASE("what passes at once shows nothing, and neither does what comes with the end of it", "[sched][saved_up]") {
    SavedUp saved_up;
    for (int i = 0; i < 4; ++i) CHECK(saved_up.came_through(32 * kib, 32 * kib, thought).bytes == 0);
    CHECK(saved_up.came_through(32 * kib, 32 * kib * 6, thought).bytes == 0);
    CHECK(saved_up.came_through(32 * kib, 32 * kib * 8, thought).bytes == 32 * kib);
    CHECK(saved_up.came_through(32 * kib, 32 * kib, thought).bytes == 32 * kib);  // until it has been idle
    saved_up.idle();
    CHECK(saved_up.came_through(32 * kib, 32 * kib, thought).bytes == 0);
}

TEST_CASE("more than rails save up shows that one has become faster", "[sched][saved_up]") {
    SavedUp saved_up;
    SavedUp::Shown shown;
    int lumps = 0;
    for (; shown.bytes == 0 && lumps < 100; ++lumps) shown = saved_up.came_through(64 * kib, 64 * kib, thought);
    CHECK(lumps == 8);
    CHECK(shown.bytes == 512 * kib);
    CHECK(shown.time == 512 * kib);
}

TEST_CASE("... in several turns, too, if nothing takes its time", "[sched][saved_up]") {
    SavedUp saved_up;
    const auto turn = [&](base::Nanoseconds per_byte) {
        saved_up.idle();
        return saved_up.came_through(128 * kib, 128 * kib * per_byte, thought).bytes;
    };
    for (int i = 0; i < 3; ++i) CHECK(turn(1) == 0);
    CHECK(turn(8) == 128 * kib);
    for (int i = 0; i < 3; ++i) CHECK(turn(1) == 0);
    CHECK(turn(1) == 512 * kib);
}

TEST_CASE("where nothing is thought, all that comes through counts", "[sched][saved_up]") {
    SavedUp saved_up;
    CHECK(saved_up.came_through(64 * kib, 1, 0).bytes == 64 * kib);
}

TEST_CASE("bursts that half pass with what was saved up before do not make a rail look faster", "[sched][pace]") {
    const auto per_byte = GENERATE(8.0, 80.0);
    Flow flow({.per_byte_ns = per_byte, .burst_bytes = 256.0 * kib}, 512 * kib, 16 * kib);
    flow.told();
    flow.bytes(2 * mib);
    for (int i = 0; i < 40; ++i) {
        const auto begun = flow.now();
        flow.bytes(512 * kib);
        flow.idle(flow.now() - begun);  // the peer's turn
        if (i >= 4) check_near(flow.per_byte_ns(), per_byte, 0.1);
    }
}

TEST_CASE("... but a rail that is ten times as fast after each turn is known to be so within 1 MiB", "[sched][pace]") {
    Flow flow({.per_byte_ns = 80}, 512 * kib, 16 * kib);
    flow.told();
    flow.bytes(2 * mib);
    flow.idle(50 * base::millisecond);
    flow.wire.change_rate(8);
    for (int i = 0; i < 2; ++i) {
        flow.bytes(512 * kib);
        flow.idle(5 * base::millisecond);
    }
    flow.bytes(512 * kib);
    check_near(flow.per_byte_ns(), 8, 0.1);
}

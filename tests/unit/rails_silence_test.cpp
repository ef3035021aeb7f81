// Silence: which links are found dead, after how long, and which are not.
#include <catch2/catch.hpp>

#include "rails/silence.hpp"

using namespace railmux;
using rails::Silence;
using Finding = Silence::Finding;

namespace {

constexpr auto silence_ms = base::millisecond;

/// A link that is looked at as the rail manager does, from the moment something is sent over it.
struct Watched {
    Silence silence;
    transports::Pulse pulse{.known = true, .outstanding = true, .heard = 1};
    base::Nanoseconds now = base::second;

    Watched() {
        static_cast<void>(silence.look({.known = true, .heard = 1}, {}, now));
        silence.unsettle(now);
    }
    Finding look(base::Nanoseconds after) {
        now += after;
        return silence.look(pulse, {}, now);
    }
    Finding look() { return look(silence.silent() > 0 ? Silence::short_period : Silence::period); }
};

}  // namespace

TEST_CASE("what is confirmed at once settles a link", "[rails][silence]") {
    Watched link;
    CHECK_FALSE(link.silence.settled());
    link.pulse = {.known = true, .outstanding = false, .heard = 2};
    CHECK(link.look() == Finding::settled);
    CHECK(link.silence.settled());
}

TEST_CASE("a network that does not tell settles a link", "[rails][silence]") {
    Watched link;
    link.pulse = {};
    CHECK(link.look() == Finding::settled);
}

TEST_CASE("steady traffic is never silent", "[rails][silence]") {
    Watched link;
    for (int i = 0; i < 100'000; ++i) {
        ++link.pulse.heard;
        link.pulse.asked += i % 7 == 0;  // some of it is lost and sent again
        REQUIRE(link.look() == Finding::waiting);
    }
}

TEST_CASE("what stays unanswered though it was sent again is doubtful within 60 ms", "[rails][silence]") {
    Watched link;
    CHECK(link.look() == Finding::overdue);  // now the network asks
    CHECK(link.look() == Finding::waiting);
    ++link.pulse.asked;
    CHECK(link.look() == Finding::waiting);
    CHECK(link.look() == Finding::doubtful);
    CHECK(link.silence.silent() == 50 * silence_ms);
}

TEST_CASE("an acknowledgement that is held back raises no alarm", "[rails][silence]") {
    Watched link;  // the kernel of a busy process takes 40 ms
    for (int round = 0; round < 1000; ++round) {
        CHECK(link.look() == Finding::overdue);
        CHECK(link.look() == Finding::waiting);
        ++link.pulse.heard;
        link.pulse.outstanding = false;
        CHECK(link.look() == Finding::settled);
        link.pulse.outstanding = true;
        link.silence.unsettle(link.now);
    }
}

TEST_CASE("what nobody sent again is lost only when its time is over", "[rails][silence]") {
    Watched link;
    auto finding = link.look();
    while (finding != Finding::lost) {
        REQUIRE(link.now < 3 * base::second);
        CHECK(finding != Finding::doubtful);
        finding = link.look();
    }
    CHECK(link.silence.silent() == 750 * silence_ms);
}

TEST_CASE("a process that did not look for long does not take that for silence", "[rails][silence]") {
    Watched link;
    ++link.pulse.asked;
    CHECK(link.look(60 * base::second) == Finding::overdue);
    CHECK(link.silence.silent() == 40 * silence_ms);
    ++link.pulse.heard;
    CHECK(link.look(silence_ms) == Finding::waiting);
    CHECK(link.silence.silent() == 0);
}

TEST_CASE("of two idle sides one sends keepalives and the other shows now and then that it reads them",
          "[rails][silence]") {
    Silence a, b;
    std::uint64_t of_a = 0, of_b = 0;
    for (int turn = 0; turn < 1000; ++turn) {
        of_a += a.wants_keepalive(of_b, true) ? 1 : 0;
        of_b += b.wants_keepalive(of_a, true) ? 1 : 0;
    }
    CHECK(of_a + of_b >= 1000);
    CHECK(of_a + of_b < 1300);
    CHECK(std::min(of_a, of_b) > 200);
}

TEST_CASE("keepalives that nobody reads become rare", "[rails][silence]") {
    Silence a;
    int sent = 0;
    for (int turn = 0; turn < 240; ++turn) sent += a.wants_keepalive(0, true) ? 1 : 0;  // a minute
    CHECK(sent < 40);
    CHECK(sent > 30);
    CHECK_FALSE(a.wants_keepalive(1, true));  // it reads again
    CHECK(a.wants_keepalive(1, true));
    CHECK(a.wants_keepalive(1, true));
}

TEST_CASE("a link that is used to hear of its peer makes no other link do the same", "[rails][silence]") {
    Watched link;
    link.silence.expect(link.pulse);
    for (int i = 0; i < 4; ++i) CHECK(link.look() == Finding::waiting);
    ++link.pulse.heard;
    link.pulse.outstanding = false;
    CHECK(link.look() == Finding::settled);
    link.pulse.outstanding = true;
    link.silence.unsettle(link.now);  // the next time it is its own
    CHECK(link.look() == Finding::overdue);
}

#include <catch2/catch.hpp>

#include "messaging/burst.hpp"

using namespace railmux;
using messaging::Burst;

namespace {

constexpr auto us = base::microsecond;

bool lone() { return true; }
bool unanswered() { return false; }

}  // namespace

TEST_CASE("a lone message leaves at once", "[messaging][burst]") {
    Burst burst;
    for (base::Nanoseconds now = 100 * us; now < 200 * us; now += 8 * us) {
        CHECK(burst.add(8, now, true, lone));
        burst.left(now + 2 * us);
        CHECK_FALSE(burst.waiting());
    }
}

TEST_CASE("one by one leaves at once, whether the peer answers or not", "[messaging][burst]") {
    Burst burst;
    for (base::Nanoseconds now = 100 * us; now < 200 * us; now += 10 * us) {
        CHECK(burst.add(8, now, true, unanswered));
        burst.left(now + 2 * us);
    }
}

TEST_CASE("the first of a burst leaves at once, the others together, however long a call takes", "[messaging][burst]") {
    const auto cost = GENERATE(1 * us, 5 * us, 7 * us, 20 * us);
    Burst burst;
    for (base::Nanoseconds now = 100 * us; now < 10'000 * us; now += 100 * us) {
        CHECK(burst.add(8, now, true, lone));
        burst.left(now + cost);
        for (int i = 1; i < 4; ++i) CHECK_FALSE(burst.add(8, now + cost + i * us, true, lone));
        burst.left(now + cost + 4 * us);
    }
}

TEST_CASE("bursts in a row to a peer that has not answered leave as a whole, from the second on",
          "[messaging][burst]") {
    Burst burst;
    base::Nanoseconds now = 100 * us;
    const auto send_four = [&] {
        int at_once = 0;
        for (int i = 0; i < 4; ++i, now += 100) {
            if (!burst.add(8, now, true, unanswered)) continue;
            ++at_once;
            burst.left(now += 2 * us);
        }
        if (burst.waiting()) burst.left(now += 2 * us);
        return at_once;
    };
    CHECK(send_four() == 1);
    for (int round = 0; round < 10; ++round) {
        now += 10 * us;
        CHECK(send_four() == 0);
    }
    SECTION("unless they are far apart") {
        now += 100 * us;
        CHECK(send_four() == 1);
    }
    SECTION("or the last one was of one message: that one waited for the look, the next one does not") {
        now += 10 * us;
        CHECK_FALSE(burst.add(8, now, true, unanswered));
        burst.left(now += us);
        now += 10 * us;
        CHECK(burst.add(8, now, true, unanswered));
    }
    SECTION("or the peer has answered") {
        now += 10 * us;
        CHECK(burst.add(8, now, true, lone));
    }
    SECTION("or nobody looks for long: the next message takes along what waited") {
        now += 10 * us;
        CHECK_FALSE(burst.add(8, now, true, unanswered));
        now += 50 * us;
        CHECK(burst.add(8, now, true, unanswered));
    }
}

TEST_CASE("a burst of long ago says nothing of a message right behind one that never waits", "[messaging][burst]") {
    Burst burst;
    CHECK(burst.add(8, 100 * us, true, lone));
    burst.left(101 * us);
    CHECK_FALSE(burst.add(8, 102 * us, true, lone));
    burst.left(103 * us);
    burst.left(10'000 * us);  // a send that blocks
    CHECK(burst.add(8, 10'010 * us, true, unanswered));
}

TEST_CASE("many bytes do not wait", "[messaging][burst]") {
    Burst burst;
    base::Nanoseconds now = 100 * us;
    CHECK(burst.add(8, now, true, unanswered));
    burst.left(now += us);
    CHECK_FALSE(burst.add(30'000, now, true, unanswered));
    CHECK(burst.add(4'000, now, true, unanswered));
    burst.left(now);
    CHECK_FALSE(burst.waiting());
}

TEST_CASE("who looks right behind each burst, some times, has a habit", "[messaging][burst]") {
    Burst burst;
    base::Nanoseconds now = 100 * us;
    int messages = 11;  // of which ten wait for the look, and save a microsecond if it comes at once
    const auto send = [&](base::Nanoseconds apart, base::Nanoseconds look) {
        int prompt = 0;
        for (int i = 0; i < messages; ++i, now += apart) {
            if (burst.add(8, now, true, unanswered)) burst.left(now);
            prompt += burst.prompt() ? 1 : 0;
        }
        now += look - apart;
        CHECK(burst.waiting());
        burst.looked(now);
        burst.left(now);
        CHECK_FALSE(burst.waiting());
        now += 100 * us;
        return prompt;
    };
    const auto shown_after = [&] {
        int bursts = 0;
        while (send(100, 200) == 0) ++bursts;
        return bursts;
    };
    REQUIRE(shown_after() == 5);
    // That has shown that they may leave as a whole, too: all but the first wait behind another one.
    CHECK(send(100, 200) == messages - 2);
    SECTION("of long bursts: short ones gain nothing, and change nothing") {
        messages = 4;
        for (int i = 0; i < 100; ++i) CHECK(send(100, 200) == messages - 2);
        CHECK(send(100, 20 * us) == messages - 2);
        for (int i = 0; i < 100; ++i) CHECK(send(100, 200) == 0);
        messages = 11;
        CHECK(shown_after() == 17);
    }
    SECTION("until a look comes so late that waiting for it was in vain") {
        CHECK(send(100, 20 * us) == messages - 2);
        CHECK(shown_after() == 18);
    }
    SECTION("or a message does") {
        CHECK(send(4 * us, 200) < messages - 2);
        CHECK(shown_after() == 33);
    }
    SECTION("which now and then costs no more than waiting has saved") {
        int bundled = 0;
        for (int i = 1; i <= 1000; ++i) bundled += send(100, i % 40 == 0 ? 20 * us : 200) > 0 ? 1 : 0;
        CHECK(bundled >= 950);
    }
    SECTION("and who computes behind every tenth has none") {
        int in_vain = 0;
        for (int i = 1; i <= 1000; ++i) in_vain += send(100, i % 10 == 0 ? 20 * us : 200) > 0 && i % 10 == 0 ? 1 : 0;
        CHECK(in_vain <= 2);
    }
    SECTION("and whoever begins to, after thousands of bursts, is believed soon") {
        for (int i = 0; i < 10'000; ++i) send(100, 200);
        int in_vain = 0;
        for (int i = 0; i < 1000; ++i) in_vain += send(100, 20 * us) > 0 ? 1 : 0;
        CHECK(in_vain <= 12);
    }
    SECTION("and whoever computes for a second is, too, but not for ever") {
        send(100, 1'000'000 * us);
        CHECK(shown_after() == 10'000);
    }
}

TEST_CASE("that messages took long to be put away makes nobody late who looks right behind them",
          "[messaging][burst]") {
    const bool told = GENERATE(true, false);
    Burst burst;
    base::Nanoseconds now = 100 * us;
    const auto send = [&] {
        for (int i = 0; i < 11; ++i, now += 100) {
            const bool at_once = burst.add(8, now, true, unanswered);
            now += 4 * us;
            if (at_once) {
                burst.left(now);
            } else if (told) {
                burst.put_away(now);
            }
        }
        const bool prompt = burst.prompt();
        burst.looked(now += 200);
        burst.left(now);
        now += 100 * us;
        return prompt;
    };
    for (int i = 0; i < 6; ++i) CHECK_FALSE(send());
    for (int i = 0; i < 20; ++i) CHECK(send() == told);
}

TEST_CASE("who looks right behind each burst, some times, has them leave as a whole", "[messaging][burst]") {
    Burst burst;
    base::Nanoseconds now = 100 * us;
    base::Nanoseconds apart = 5 * us;  // bursts
    const auto look = [&](base::Nanoseconds after) {
        now += after;
        if (!burst.waiting()) return;
        burst.looked(now);
        burst.left(now += 2 * us);
    };
    // Of two messages, to a peer that has answered all that came before. How many left before the look?
    const auto send = [&](base::Nanoseconds looks_after) {
        now += apart + 6 * us;
        int at_once = 0;
        for (int i = 0; i < 2; ++i, now += 100) {
            if (!burst.add(8, now, true, lone)) continue;
            ++at_once;
            burst.left(now += 2 * us);
        }
        look(looks_after);
        return at_once;
    };
    const auto shown_after = [&] {
        int bursts = 0;
        while (send(200) == 1) ++bursts;
        return bursts;
    };
    REQUIRE(shown_after() == 5);
    for (int i = 0; i < 10; ++i) CHECK(send(200) == 0);
    SECTION("not where somebody would have to be woken for them") {
        now += 20 * us;
        CHECK(burst.add(8, now, false, lone));
    }
    SECTION("however far apart they are") {
        apart = 10'000 * us;
        for (int i = 0; i < 10; ++i) CHECK(send(200) == 0);
    }
    SECTION("a lone message that follows waits for its look, the next one does not") {
        now += 20 * us;
        CHECK_FALSE(burst.add(8, now, true, lone));
        look(200);
        now += 20 * us;
        CHECK(burst.add(8, now, true, lone));
    }
    SECTION("lone ones show nothing") {
        burst = {};
        for (int i = 0; i < 100; ++i, now += 20 * us) {
            CHECK(burst.add(8, now, true, lone));
            burst.left(now);
        }
        CHECK(shown_after() == 5);
    }
    SECTION("until a look comes so late that waiting for it was in vain") {
        CHECK(send(20 * us) == 0);
        CHECK(shown_after() > 5);
    }
    SECTION("or a lone message has waited in vain") {
        now += 20 * us;
        CHECK_FALSE(burst.add(8, now, true, lone));
        look(100 * us);
        CHECK(shown_after() > 50);
    }
    SECTION("and who computes behind every tenth has no habit") {
        int in_vain = 0;
        for (int i = 1; i <= 1000; ++i) {
            const bool computes = i % 10 == 0;
            in_vain += send(computes ? 20 * us : 200) == 0 && computes ? 1 : 0;
        }
        CHECK(in_vain <= 2);
    }
    SECTION("and whoever begins to, after thousands of bursts, is believed soon") {
        for (int i = 0; i < 10'000; ++i) send(200);
        int in_vain = 0;
        for (int i = 0; i < 1000; ++i) in_vain += send(20 * us) == 0 ? 1 : 0;
        CHECK(in_vain <= 12);
    }
}

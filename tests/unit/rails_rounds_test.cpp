#include <catch2/catch.hpp>

#include <array>
#include <vector>

#include "rails/rounds.hpp"

using namespace railmux;
using rails::Found;
using rails::Rounds;

namespace {

/// Three rails, of which the first brings something when `busy`, the second moves bytes when `moving`, and the last brings
/// something when `late`.
struct Looked {
    explicit Looked(std::uint32_t rails = 3, base::Nanoseconds rest = 0) {
        for (std::uint32_t rail = 0; rail < rails; ++rail) rounds.add(rail, rail == 1 ? 0 : rest);
    }
    bool go(base::Nanoseconds later = 10, bool all = false) { return look(later, all) == Found::events; }
    Found look(base::Nanoseconds later = 10, bool all = false) {
        now += later;
        return rounds.go(all, now, [&](std::uint32_t rail) {
            ++looks[rail];
            if (rail == 1 && moving) return Found::moved;
            if (rail == 0 && much) rounds.left_some();
            return (rail == 0 && busy) || (rail == 2 && late) ? Found::events : Found::nothing;
        });
    }
    /// The others have brought nothing for long.
    void tire() {
        busy = true;
        for (int i = 0; i < 20'000; ++i) go();
        looks = {};
    }

    Rounds rounds;
    base::Nanoseconds now = base::second;
    std::array<int, 3> looks{};
    bool busy = false;
    bool moving = false;
    bool late = false;
    bool much = false;  // what the first one brings
};

}  // namespace

TEST_CASE("each rail has its turn, behind the one that had something", "[rails][rounds]") {
    Looked f;
    f.busy = true;
    for (int i = 0; i < 9; ++i) CHECK(f.go());
    CHECK(f.looks == std::array{9, 8, 8});
    f.busy = false;
    CHECK_FALSE(f.go());
    CHECK(f.looks == std::array{10, 9, 9});
}

TEST_CASE("what has brought nothing for long is left out of three calls in four", "[rails][rounds]") {
    Looked f;
    f.tire();
    for (int i = 0; i < 400; ++i) CHECK(f.go());
    CHECK(f.looks[0] == 400);
    CHECK(f.looks[1] == f.looks[2]);
    CHECK(f.looks[1] >= 99);
    CHECK(f.looks[1] <= 101);
}

TEST_CASE("it is found in the fourth call at the latest, and then not left out", "[rails][rounds]") {
    Looked f;
    f.tire();
    f.late = true;
    for (int i = 0; i < 4; ++i) f.go();
    CHECK(f.looks[2] >= 1);
    f.looks = {};
    for (int i = 0; i < 8; ++i) f.go();
    CHECK(f.looks[2] == 4);  // in turns with the first
}

TEST_CASE("whoever calls seldom, was woken, or wants all of them, looks at all", "[rails][rounds]") {
    const int why = GENERATE(0, 1, 2);
    const bool from_the_middle = GENERATE(true, false);
    Looked f;
    f.tire();
    if (from_the_middle) f.go();  // the first had something: the next call begins behind it
    f.busy = false;
    if (!from_the_middle) f.rounds.prefer(0);
    for (int i = 0; i < 10; ++i) {
        f.looks = {};
        if (why == 0) f.rounds.woken(f.now);
        f.go(why == 1 ? 10 * base::microsecond : 10, why == 2);
        CHECK(f.looks == std::array{1, 1, 1});
    }
}

TEST_CASE("one rail alone is never left out", "[rails][rounds]") {
    Looked f(1);
    for (int i = 0; i < 5000; ++i) CHECK_FALSE(f.go());
    CHECK(f.looks[0] == 5000);
}

TEST_CASE("what is known of all rails is known as of the last round that left none out", "[rails][rounds]") {
    Looked f;
    CHECK_FALSE(f.go());
    CHECK(f.rounds.looks().looked == f.now);
    CHECK(f.rounds.looks().taken == f.now);
    f.tire();
    for (int i = 0; i < 1000; ++i) {
        f.go(100);
        CHECK(f.now - f.rounds.looks().looked <= 6 * base::microsecond);
    }
    CHECK(f.rounds.looks().taken == f.rounds.looks().looked);
    f.rounds.clear();
    CHECK_FALSE(f.go());
    CHECK(f.rounds.looks().looked == f.now);
}

TEST_CASE("what a look may have left was not taken by the end of its round", "[rails][rounds]") {
    Looked f;
    f.busy = f.much = true;
    const auto before = f.rounds.looks().taken;
    for (int i = 0; i < 10; ++i) CHECK(f.go());
    CHECK(f.rounds.looks().looked > before);
    CHECK(f.rounds.looks().taken == before);
    f.much = false;
    for (int i = 0; i < 3; ++i) CHECK(f.go());
    CHECK(f.rounds.looks().taken > before);
    CHECK(f.rounds.looks().taken < f.now);  // others may have brought something since
}

TEST_CASE("of those with a rest, who brings nothing beside another one is looked at now and then", "[rails][rounds]") {
    constexpr auto rest = 20 * base::microsecond;
    Looked f(3, rest);
    for (int i = 0; i < 20'000; ++i) f.go();
    f.looks = {};
    for (int i = 0; i < 4000; ++i) f.go();
    CHECK(f.looks[0] == f.looks[2]);  // nobody is used
    f.tire();
    for (int i = 0; i < 20'000; ++i) CHECK(f.go());
    CHECK(f.looks[0] == 20'000);
    CHECK(f.looks[1] >= 4000);  // it has none
    CHECK(f.looks[2] >= 8);
    CHECK(f.looks[2] <= 10);
    CHECK(f.now - f.rounds.looks().looked <= 6 * base::microsecond);

    SECTION("the next one to bring something is no longer left out, and the other one is") {
        f.busy = false;
        f.late = true;
        for (int i = 0; i < 20'000; ++i) f.go();
        f.looks = {};
        for (int i = 0; i < 20'000; ++i) CHECK(f.go());
        CHECK(f.looks[2] == 20'000);
        CHECK(f.looks[0] <= 10);
    }
    SECTION("whoever was woken, or wants all of them, looks at it") {
        const bool woken = GENERATE(false, true);
        f.busy = false;
        for (int i = 0; i < 10; ++i) {
            f.looks = {};
            if (woken) f.rounds.woken(f.now);
            f.go(10, !woken);
            CHECK(f.looks[2] == 1);
        }
    }
}

TEST_CASE("a rail that moves bytes is looked at each time, and the others in turn", "[rails]") {
    Looked f;
    f.moving = true;
    for (int i = 0; i < 5000; ++i) CHECK(f.look() == Found::moved);
    f.busy = true;
    CHECK(f.look() == Found::events);
    f.busy = false;
    CHECK(f.look() == Found::moved);
    CHECK(f.looks[1] == 5001);
    CHECK(f.looks[0] > 1250);
    CHECK(f.rounds.looks().taken == f.now);  // nothing had been waiting
}

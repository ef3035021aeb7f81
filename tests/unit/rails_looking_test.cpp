// Which rails are looked at, and how often.
#include <catch2/catch.hpp>

#include "forwarding_rail.hpp"
#include "unit/rails_world.hpp"

using namespace rails_world;  // NOLINT: the tests are about it

namespace {

class CountingRail final : public ForwardingRail {
public:
    using ForwardingRail::ForwardingRail;
    [[nodiscard]] std::size_t poll(std::span<transports::Event> events) noexcept override {
        ++looks;
        return ForwardingRail::poll(events);
    }
    std::uint64_t looks = 0;
};

/// A pair of which the first process counts its looks at the fast rail and at the slow one, which is idle.
struct Counted {
    Counted() {
        pair.until([&] { return pair.both_have(2); });
        for (int i = 0; i < 3000; ++i) pair.talk();
    }
    /// Looks `times`, `apart`; the message that the peer has sent comes in meanwhile.
    void look(int times, base::Nanoseconds apart) {
        fast.looks = slow.looks = 0;
        for (int i = 0; i < times; ++i) {
            pair.world.fabric.advance(apart);
            static_cast<void>(pair.a.manager.poll(World::now()));
        }
    }

    Couple pair;
    CountingRail& fast = pair.a.wrap<CountingRail>(0);
    CountingRail& slow = pair.a.wrap<CountingRail>(1);
    bool asked = (pair.a.say(1, "first"), true);  // brings up links, through what counts
};

}  // namespace

TEST_CASE("a rail that brings nothing is looked at in one round of four", "[rails][looking]") {
    Counted f;
    f.look(100, 10);  // nanoseconds
    CHECK(f.fast.looks == 100);
    CHECK(f.slow.looks >= 24);
    CHECK(f.slow.looks <= 26);
}

TEST_CASE("who looks seldom looks at all rails", "[rails][looking]") {
    Counted f;
    f.look(100, 10 * base::microsecond);
    CHECK(f.fast.looks >= 100);
    CHECK(f.slow.looks == 100);
}

TEST_CASE("who was woken looks at all rails", "[rails][looking]") {
    Counted f;
    f.look(8, 10);
    for (int i = 0; i < 10; ++i) {
        f.pair.a.manager.watched_until(World::now());
        f.look(1, 10);
        CHECK(f.slow.looks == 1);
    }
}

TEST_CASE("what comes over a rail that rests is found within four looks", "[rails][looking]") {
    Counted f;
    f.pair.world.fabric.cut("a/eth0", "b/eth0", sim::Cut::loud);
    f.pair.until([&] { return f.pair.both_have(1); });
    f.pair.b->say(0, "over the slow one");
    f.pair.world.fabric.advance(base::millisecond);
    int looks = 0;
    while (!Couple::heard(f.pair.a, "over the slow one")) {
        REQUIRE(++looks <= 8);  // one finds something else at most: the end of a post
        static_cast<void>(f.pair.a.manager.poll(World::now()));
    }
}

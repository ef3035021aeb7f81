#include <catch2/catch.hpp>

#include <random>

#include "rails/peer_clock.hpp"

using namespace railmux;
using rails::PeerClock;

namespace {

constexpr base::Nanoseconds start = 5 * base::second;

/// A peer whose clock began at another time, and goes faster or slower than ours.
struct FarClock {
    std::uint64_t began = 0;
    double rate = 1;
    PeerClock clock;

    [[nodiscard]] std::uint64_t at(base::Nanoseconds now) const {
        return began + static_cast<std::uint64_t>(static_cast<double>(now) * rate);
    }
    /// Something goes there and back.
    void exchange(base::Nanoseconds sent, base::Nanoseconds there, base::Nanoseconds back,
                  base::Nanoseconds longer = 0) {
        clock.answered(sent, at(sent + there), sent + there + back, longer);
    }
    /// How wrong the clock is of something that arrived then.
    [[nodiscard]] base::Nanoseconds error(base::Nanoseconds arrived) const {
        const auto said = clock.here(at(arrived), arrived - base::second, arrived + base::second);
        return std::abs(said - arrived);
    }
};

}  // namespace

TEST_CASE("peer clock: the shortest round trip says what time it is over there", "[rails]") {
    for (const std::uint64_t began : {std::uint64_t{0}, std::uint64_t{77} << 40, ~std::uint64_t{0} - 12345}) {
        FarClock peer{.began = began};
        peer.exchange(start, 700'000, 5'000);
        CHECK(peer.error(start) <= peer.clock.least_way(start));
        peer.exchange(start + 1'000'000, 5'000, 5'000);
        CHECK(peer.error(start) <= 1);
        peer.exchange(start + 2'000'000, 900'000, 5'000);  // is late, and says nothing of the clock
        CHECK(peer.error(start + 3'000'000) <= 1);
    }
}

TEST_CASE("peer clock: what is known to take longer on the way there is allowed for", "[rails]") {
    FarClock peer;
    peer.exchange(start, 45'000, 5'000, 40'000);
    CHECK(peer.error(start) <= 1);
    // The same from elsewhere, where that is not known: another half to and fro.
    peer.exchange(start + 1000, 45'000, 5'000);
    CHECK(peer.error(start) <= peer.clock.least_way(start + 60'000));
}

TEST_CASE("peer clock: it follows one that goes faster or slower, within what it says", "[rails]") {
    std::mt19937_64 random(3);
    for (const double rate : {1 - 50e-6, 1.0, 1 + 50e-6}) {
        FarClock peer{.rate = rate};
        for (auto now = start; now < start + 20 * base::second; now += base::millisecond) {
            const auto there = 5'000 + static_cast<base::Nanoseconds>(random() % 4 == 0 ? 0 : random() % 500'000);
            peer.exchange(now, there, 5'000);
            const auto then = now + there + 5'000;
            REQUIRE(peer.error(then) <= peer.clock.least_way(then));
        }
        CHECK(peer.error(start + 20 * base::second) < 5'000);
    }
}

TEST_CASE("peer clock: one that was set is known anew with the next answer", "[rails]") {
    for (const std::uint64_t jump : {std::uint64_t{0} - 3'000'000, std::uint64_t{3'000'000}, std::uint64_t{1} << 62}) {
        FarClock peer;
        peer.exchange(start, 5'000, 5'000);
        peer.began += jump;
        peer.exchange(start + 1'000'000, 400'000, 5'000);
        CHECK(peer.error(start + 2'000'000) <= peer.clock.least_way(start + 2'000'000));
        peer.exchange(start + 3'000'000, 5'000, 5'000);
        CHECK(peer.error(start + 4'000'000) <= 1);
    }
}

TEST_CASE("peer clock: whatever a peer says, it came between then and now", "[rails]") {
    std::mt19937_64 random(4);
    PeerClock clock;
    auto now = start;
    for (int i = 0; i < 10'000; ++i) {
        const auto sent = now;
        now += static_cast<base::Nanoseconds>(random() % base::second);
        const auto there = random() >> (random() % 64);
        clock.answered(sent, there, now, static_cast<base::Nanoseconds>(random() % base::second));
        const auto said = clock.here(random(), sent, now);
        REQUIRE(said >= sent);
        REQUIRE(said <= now);
        REQUIRE(clock.least_way(now) >= 0);
    }
}

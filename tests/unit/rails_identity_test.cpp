// By what a rail is known again in later runs.
#include <catch2/catch.hpp>

#include "rails/rail_identity.hpp"

using namespace railmux;

TEST_CASE("a rail is known again by its name, its identity and its speed", "[rails]") {
    const transports::RailTraits traits{.name = "tcp:eth0", .identity = "10.0.0.1", .speed_bps = 1'000'000'000};
    const auto known = rails::rail_identity("machine", traits);
    CHECK(known != 0);
    CHECK(rails::rail_identity("machine", traits) == known);
    CHECK(rails::rail_identity("another", traits) != known);
    auto other = traits;
    other.name = "tcp:eth1";
    CHECK(rails::rail_identity("machine", other) != known);
    other = traits;
    other.identity = "10.0.1.1";
    CHECK(rails::rail_identity("machine", other) != known);
    other = traits;
    other.speed_bps *= 10;
    CHECK(rails::rail_identity("machine", other) != known);
}

TEST_CASE("a rail that measures its own speed is known again whatever it finds", "[rails]") {
    transports::RailTraits traits{.name = "shm:node", .by_processors = true, .speed_bps = 80'000'000'000};
    const auto known = rails::rail_identity("machine", traits);
    traits.speed_bps += 1'234'567'890;
    CHECK(rails::rail_identity("machine", traits) == known);
}

// The address of a verbs rail: what others are told, and what is made of what they tell.
#include <catch2/catch.hpp>
#include <vector>

#include "transports/verbs/address.hpp"
#include "unit/ip_addresses.hpp"

using namespace railmux::transports::verbs;
using railmux::test::ip_address;

TEST_CASE("a verbs rail's address comes back as it was", "[transports]") {
    for (const auto& at : {ip_address("10.77.0.1", 24), ip_address("fd77::1", 64)}) {
        const RailAddress sent{.host = 0x1122334455667788, .at = at, .full_port = 5000, .short_port = 65535};
        const auto parsed = RailAddress::parse(sent.encode());
        REQUIRE(parsed);
        CHECK(parsed->host == sent.host);
        CHECK(parsed->at.text() == at.text());
        CHECK(parsed->at.network() == at.network());
        CHECK(parsed->full_port == 5000);
        CHECK(parsed->short_port == 65535);
    }
}

TEST_CASE("a malformed verbs address is refused", "[transports]") {
    const RailAddress good{.host = 1, .at = ip_address("10.77.0.1", 24), .full_port = 1, .short_port = 2};
    const auto bytes = good.encode();
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CHECK_FALSE(RailAddress::parse(std::span(bytes).first(size)));
    }
    auto longer = bytes;
    longer.push_back(std::byte{0});
    CHECK_FALSE(RailAddress::parse(longer));
    struct Wrong {
        std::size_t place;
        std::uint8_t value;
    };
    for (const auto& [place, value] : {Wrong{0, 2}, Wrong{9, 5}, Wrong{10, 33}, Wrong{11, 0}, Wrong{13, 0}}) {
        auto changed = bytes;  // version, family, prefix, either port
        changed[place] = std::byte{value};
        CHECK_FALSE(RailAddress::parse(changed));
    }
}

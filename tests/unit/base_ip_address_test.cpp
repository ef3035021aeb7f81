// IP addresses and their networks.
#include "base/ip_address.hpp"

#include <catch2/catch.hpp>

#include "unit/ip_addresses.hpp"

using railmux::base::IpAddress;
using railmux::test::ip_address;

TEST_CASE("addresses of one network are told from others", "[base]") {
    CHECK(ip_address("10.77.0.1", 24).same_network(ip_address("10.77.0.200", 16)));
    CHECK_FALSE(ip_address("10.77.0.1", 24).same_network(ip_address("10.77.1.1", 24)));
    CHECK_FALSE(ip_address("10.77.0.1", 24).same_network(ip_address("fd77::1", 64)));
    CHECK(ip_address("fd77::1", 64).same_network(ip_address("fd77::2:1", 64)));
    CHECK(ip_address("10.77.3.9", 20).network() == "10.77.0.0/20");
    CHECK(ip_address("fd77::ffff:1", 112).network() == "fd77::ffff:0/112");
    CHECK(ip_address("10.77.3.9", 0).network() == "0.0.0.0/0");
    CHECK(ip_address("10.77.3.9", 32).network() == "10.77.3.9/32");
}

TEST_CASE("an address is the same with any prefix, but not in another family", "[base]") {
    CHECK(ip_address("10.77.0.1", 24).same_address(ip_address("10.77.0.1", 8)));
    CHECK_FALSE(ip_address("10.77.0.1", 24).same_address(ip_address("10.77.0.2", 24)));
    CHECK_FALSE(ip_address("0.0.0.0", 0).same_address(ip_address("::", 0)));
}

TEST_CASE("an address comes back from a socket address and from the wire as it was", "[base]") {
    for (const auto& sent : {ip_address("10.77.0.1", 24), ip_address("fd77::1", 64)}) {
        const auto storage = sent.to_sockaddr(5000);
        CHECK(IpAddress::from_sockaddr(reinterpret_cast<const sockaddr&>(storage)).same_address(sent));
        const auto parsed = IpAddress::parse(sent.version(), sent.prefix, std::as_bytes(std::span(&sent.bytes, 1)));
        REQUIRE(parsed);
        CHECK(parsed->same_address(sent));
        CHECK(parsed->prefix == sent.prefix);
    }
}

TEST_CASE("an address whose family, prefix or length cannot be is refused", "[base]") {
    const auto good = ip_address("10.77.0.1", 24);
    const auto bytes = std::as_bytes(std::span(&good.bytes, 1));
    CHECK(IpAddress::parse(4, 32, bytes));
    CHECK_FALSE(IpAddress::parse(4, 33, bytes));
    CHECK(IpAddress::parse(6, 128, bytes));
    CHECK_FALSE(IpAddress::parse(6, 129, bytes));
    CHECK_FALSE(IpAddress::parse(5, 24, bytes));
    CHECK_FALSE(IpAddress::parse(4, 24, bytes.first(4)));
}

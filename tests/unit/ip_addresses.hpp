// Addresses as people write them.
#pragma once

#include <arpa/inet.h>

#include <catch2/catch.hpp>

#include "base/ip_address.hpp"

namespace railmux::test {

inline base::IpAddress ip_address(const char* text, std::uint8_t prefix) {
    base::IpAddress made{.prefix = prefix};
    if (::inet_pton(AF_INET, text, &made.bytes) == 1) return made;
    made.family = AF_INET6;
    REQUIRE(::inet_pton(AF_INET6, text, &made.bytes) == 1);
    return made;
}

}  // namespace railmux::test

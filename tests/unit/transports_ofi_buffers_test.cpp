// The buffers that ofi rails send from: small messages and the pieces of puts that the provider fetches have their own.
#include <catch2/catch.hpp>
#include <cstring>
#include <set>

#include "transports/ofi/buffers.hpp"

using namespace railmux::transports::ofi;

namespace {

Port port_of(std::size_t message_bytes) {
    Port port;
    port.info.reset(fi_allocinfo());
    port.info->fabric_attr->prov_name = ::strdup("none");  // freed with the info
    port.message_bytes = message_bytes;
    return port;
}

constexpr std::size_t copied = put_overhead + piece_bytes;
constexpr std::size_t fetched = put_overhead + fetched_piece_bytes;

}  // namespace

TEST_CASE("a small message takes no room of a large one", "[transports][ofi]") {
    const auto port = port_of(fetched);
    SendBuffers buffers(port);
    auto* const small = buffers.take(300);
    auto* const large = buffers.take(fetched);
    REQUIRE(small != nullptr);
    REQUIRE(large != nullptr);
    CHECK(small->room >= copied);
    CHECK(small->room < fetched);
    CHECK(large->room >= fetched);
    CHECK(buffers.on_their_way() == 2);
    buffers.give(*small);
    buffers.give(*large);
    CHECK(buffers.on_their_way() == 0);
    CHECK(buffers.take(copied) == small);
    CHECK(buffers.take(copied + 64) == large);
}

TEST_CASE("buffers of one size end, and those of the other are still there", "[transports][ofi]") {
    const auto port = port_of(fetched);
    SendBuffers buffers(port);
    std::set<SendBuffer*> taken;
    while (auto* const buffer = buffers.take(fetched)) CHECK(taken.insert(buffer).second);
    CHECK(taken.size() >= 250);  // 64 MiB
    CHECK(taken.size() <= 260);
    CHECK(buffers.take(300) != nullptr);
    buffers.give(**taken.begin());
    CHECK(buffers.take(fetched) == *taken.begin());
}

// The buffers that ofi rails send from: small messages and the pieces of puts that the provider fetches have their own.
#include <rdma/fi_errno.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <vector>

#include "transports/ofi/buffers.hpp"
#include "transports/ofi/endpoint.hpp"

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

/// A provider's endpoint that takes one receive buffer and no more, and writes into it to the end.
struct Reluctant {
    fid_ep endpoint{};
    fi_ops ops{};
    fi_ops_msg messages{};
    static inline std::vector<std::byte*> posted;
    static inline bool closed;

    Reluctant() {
        posted.clear();
        closed = false;
        ops.close = [](fid*) {
            for (auto* memory : posted) *memory = std::byte{1};
            closed = true;
            return 0;
        };
        messages.recvmsg = [](fid_ep*, const fi_msg* message, std::uint64_t) -> ssize_t {
            if (!posted.empty()) return -FI_ENOMEM;
            posted.push_back(static_cast<std::byte*>(message->msg_iov->iov_base));
            return 0;
        };
        endpoint.fid.ops = &ops;
        endpoint.msg = &messages;
    }
};

}  // namespace

TEST_CASE("receive buffers stay until the endpoint that has them is closed, even if it refuses others",
          "[transports][ofi]") {
    Reluctant provider;
    auto port = port_of(fetched);
    port.endpoint.reset(&provider.endpoint);
    CHECK_THROWS_AS(Endpoint(std::move(port)), railmux::Error);
    CHECK(Reluctant::posted.size() == 1);
    CHECK(Reluctant::closed);  // and nothing crashed
}

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

TEST_CASE("buffers on their way to peers without links are told from others, by size", "[transports][ofi]") {
    const auto port = port_of(fetched);
    SendBuffers buffers(port);
    Peer gone;
    Peer alive{.links = 1};
    std::vector<SendBuffer*> taken;
    while (auto* const buffer = buffers.take(fetched)) taken.push_back(buffer);
    for (auto* buffer : taken) buffer->peer = &alive;
    CHECK_FALSE(buffers.mostly_stranded(fetched));
    const auto half = taken.size() / 2;
    for (std::size_t i = 0; i < half; ++i) taken[i]->peer = &gone;
    CHECK_FALSE(buffers.mostly_stranded(fetched));
    taken[half]->peer = &gone;
    CHECK(buffers.mostly_stranded(fetched));
    CHECK_FALSE(buffers.mostly_stranded(copied));
    buffers.give(*taken[half]);
    CHECK_FALSE(buffers.mostly_stranded(fetched));
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

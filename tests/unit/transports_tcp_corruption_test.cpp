// Tcp rails on a path that changes what goes by.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "transports/tcp/wire.hpp"
#include "unit/tcp_hosts.hpp"

using namespace railmux;
using namespace railmux::transports;
using test::Tapped;
using test::Wire;

TEST_CASE("tcp: no single bit of the header of a put can change on the way and still be believed",
          "[tcp][corruption]") {
    std::array<std::byte, tcp::StreamHeader::max_size> bytes{};
    const Work work{.op = Op::put, .immediate = 7, .remote = {.id = 1, .secret = 2}, .offset = 4096};
    REQUIRE(tcp::write_header(bytes.data(), work, 1000) == tcp::StreamHeader::put_size);
    tcp::StreamHeader header;
    REQUIRE(tcp::parse(bytes, header) == tcp::Parsed::complete);
    CHECK(header.offset == 4096);
    for (std::size_t bit = 8; bit < bytes.size() * 8; ++bit) {  // those of the kind say what else it may be
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
        CHECK(tcp::parse(bytes, header) != tcp::Parsed::complete);
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
}

TEST_CASE("tcp: a put that would go elsewhere ends its link, and nothing is written", "[tcp][corruption]") {
    const std::size_t at = GENERATE(4, 24);  // of the header: its length, its offset
    Tapped t("");
    std::vector<std::byte> memory(4096);
    const auto region = t.b.rail->add_region(memory, Access::remote_write).take();
    bool changed = false;
    t.wire.change = [&](Wire::Flow& flow, std::span<std::byte> bytes) {
        if (&flow != &t.wire.connections.front().there || changed) return;
        bytes[at + 1] ^= std::byte{1};  // 256 bytes longer, or further
        changed = true;
    };
    std::vector<std::byte> payload(1024, std::byte{42});
    Segment segment{payload.data(), payload.size()};
    const Work work{.op = Op::put, .link = t.a.link, .segments = {&segment, 1}, .remote = region.key};
    REQUIRE(t.a.rail->post({&work, 1}) == 1);
    t.a.send(payload);  // what follows would be taken for a part of it
    t.a.send(payload);
    t.run([&] { return t.b.down; });
    CHECK(t.b.cause == "corrupted data (the checksum of the header of a put is wrong)");
    CHECK(std::ranges::all_of(memory, [](std::byte byte) { return byte == std::byte{0}; }));
    CHECK(t.b.received.empty());
    t.b.rail->drop_region(region);
}

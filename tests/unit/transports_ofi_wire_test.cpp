// The messages and addresses of ofi rails: what is sent comes back as it was, and what others may send harms nothing.
#include <netinet/in.h>
#include <rdma/fabric.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "transports/ofi/address.hpp"
#include "transports/ofi/link.hpp"
#include "transports/ofi/wire.hpp"

using namespace railmux::transports::ofi;
using railmux::transports::Reach;

namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::initializer_list<int> values) {
    Bytes bytes;
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
}

RailAddress internet(std::uint64_t host, std::uint32_t address, const char* fabric) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(address);
    RailAddress made{.host = host, .process = 1, .owner = 2, .format = FI_SOCKADDR_IN, .provider = "tcp;ofi_rxm"};
    made.fabric = fabric;
    made.endpoint.resize(sizeof in);
    std::memcpy(made.endpoint.data(), &in, sizeof in);
    return made;
}

RailAddress shared_memory(std::uint64_t host, std::uint32_t process, std::uint64_t owner) {
    return {.host = host,
            .process = process,
            .owner = owner,
            .format = FI_ADDR_STR,
            .provider = "shm",
            .fabric = "shm",
            .endpoint = bytes_of({'f', 'i', 0})};
}

}  // namespace

TEST_CASE("headers of ofi messages come back as they were", "[transports]") {
    std::array<std::byte, Header::size + PutHeader::size> bytes{};
    write(bytes.data(),
          Header{.kind = Kind::put, .flags = Header::notify, .number = 65535, .to = {7, 0x1122334455667788}});
    write(bytes.data() + Header::size,
          PutHeader{.key = {1, 2}, .offset = ~std::uint64_t{0}, .immediate = 0xfffffff0, .rest = 1 << 20});
    std::span<const std::byte> rest(bytes);
    const auto header = take_header(rest);
    REQUIRE(header);
    CHECK(header->kind == Kind::put);
    CHECK(header->flags == Header::notify);
    CHECK(header->number == 65535);
    CHECK(header->to == LinkName{7, 0x1122334455667788});
    const auto put = take_put_header(rest);
    REQUIRE(put);
    CHECK(put->key == railmux::transports::RegionKey{1, 2});
    CHECK(put->offset == ~std::uint64_t{0});
    CHECK(put->immediate == 0xfffffff0);
    CHECK(put->rest == 1 << 20);
    CHECK(rest.empty());
}

TEST_CASE("the header of a put of an ofi rail that was changed on the way is none", "[transports]") {
    std::array<std::byte, PutHeader::size> bytes{};
    write(bytes.data(), PutHeader{.key = {1, 2}, .offset = 4096, .immediate = 7, .rest = 1 << 20});
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
        std::span<const std::byte> rest(bytes);
        CHECK_FALSE(take_put_header(rest));
        bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    }
}

TEST_CASE("a hello of an ofi rail comes back as it was, and never half of it", "[transports]") {
    const auto address = bytes_of({1, 2, 3});
    const auto said = bytes_of({4, 5});
    const auto message = encode(Header{.kind = Kind::hello}, Hello{.from = {3, 4}, .address = address, .bytes = said});
    std::span<const std::byte> body(message);
    REQUIRE(take_header(body));
    const auto hello = parse_hello(body);
    REQUIRE(hello);
    CHECK(hello->version == wire_version);
    CHECK(hello->from == LinkName{3, 4});
    CHECK(std::ranges::equal(hello->address, address));
    CHECK(std::ranges::equal(hello->bytes, said));
    for (std::size_t size = 0; size + said.size() < body.size(); ++size) CHECK_FALSE(parse_hello(body.first(size)));
    auto long_hello = message;
    long_hello.resize(message.size() + max_hello);
    CHECK_FALSE(parse_hello(std::span(long_hello).subspan(Header::size)));
    // Of another version it may be as long as it likes.
    long_hello[Header::size + 4] = static_cast<std::byte>(wire_version + 1);
    CHECK(parse_hello(std::span(long_hello).subspan(Header::size)));
}

TEST_CASE("an ofi address comes back as it was; a malformed one is refused", "[transports]") {
    for (const auto& sent : {internet(5, 0x0a4d0001, "10.77.0.0/24"), shared_memory(5, 6, 7)}) {
        const auto bytes = sent.encode();
        const auto parsed = RailAddress::parse(bytes);
        REQUIRE(parsed);
        CHECK(parsed->encode() == bytes);
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            CHECK_FALSE(RailAddress::parse(std::span(bytes).first(size)));
        }
    }
    auto wrong_family = internet(5, 1, "");
    wrong_family.endpoint[0] = std::byte{99};
    CHECK_FALSE(RailAddress::parse(wrong_family.encode()));
    auto endless = shared_memory(5, 6, 7);
    endless.endpoint.back() = std::byte{'x'};
    CHECK_FALSE(RailAddress::parse(endless.encode()));
    auto narrow = internet(1, 0x0a4d0001, "10.77.0.0/24");
    narrow.message_bytes = least_message - 1;  // every rail takes a frame
    CHECK_FALSE(RailAddress::parse(narrow.encode()));
    auto longest = internet(1, 0x0a4d0001, "10.77.0.0/24");
    longest.format = FI_FORMAT_UNSPEC;
    longest.provider.assign(64, 'p');
    longest.fabric.assign(64, 'f');
    longest.endpoint.resize(94);
    CHECK(longest.encode().size() == max_address);
    CHECK(RailAddress::parse(longest.encode()));
    longest.endpoint.resize(95);
    CHECK_FALSE(RailAddress::parse(longest.encode()));
}

TEST_CASE("ofi rails reach those of their provider and place", "[transports]") {
    const auto here = internet(1, 0x0a4d0001, "10.77.0.0/24");
    CHECK(here.reach(internet(2, 0x0a4d0002, "10.77.0.0/24")).reach == Reach::direct);
    CHECK(here.reach(internet(2, 0x0a4e0002, "10.78.0.0/24")).reach == Reach::routed);
    CHECK(here.reach(internet(1, 0x0a4d0001, "10.77.0.0/24")).reach == Reach::fallback);
    CHECK(here.reach(internet(2, 0x7f000001, "127.0.0.1/32")).reach == Reach::never);
    CHECK(here.reach(internet(1, 0x7f000001, "127.0.0.1/32")).reach == Reach::never);
    CHECK(here.reach(shared_memory(1, 1, 1)).reach == Reach::never);
    const auto lo = internet(1, 0x7f000001, "127.0.0.1/32");
    CHECK(lo.reach(internet(1, 0x7f000001, "127.0.0.1/32")).reach == Reach::direct);
    CHECK(lo.reach(internet(2, 0x7f000001, "127.0.0.1/32")).reach == Reach::never);
    const auto memory = shared_memory(1, 10, 1);
    CHECK(memory.reach(shared_memory(1, 11, 2)).reach == Reach::direct);
    CHECK(memory.reach(shared_memory(2, 11, 2)).reach == Reach::never);
    CHECK(memory.reach(shared_memory(1, 10, 1)).reach == Reach::direct);
    CHECK(memory.reach(shared_memory(1, 10, 2)).reach == Reach::never);
}

TEST_CASE("a source gives its bytes in order, in any pieces", "[transports]") {
    Bytes all;
    for (int i = 0; i < 200; ++i) all.push_back(static_cast<std::byte>(i));
    const std::array<railmux::transports::Segment, 4> segments{
        {{all.data(), 50}, {nullptr, 0}, {all.data() + 50, 1}, {all.data() + 51, 149}}};
    std::mt19937 random(1);
    for (int round = 0; round < 50; ++round) {
        Source source(railmux::transports::Work{.segments = segments});
        REQUIRE(source.left == all.size());
        Bytes got(all.size());
        std::size_t at = 0;
        while (source.left > 0) {
            const auto piece = std::min<std::size_t>(source.left, random() % 70);
            source.copy(got.data() + at, piece);
            at += piece;
        }
        CHECK(got == all);
    }
}

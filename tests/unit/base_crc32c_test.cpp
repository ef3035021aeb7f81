// CRC32C: the known answers, and that every way of computing it gives the same.
#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "base/crc32c.hpp"

using namespace railmux;
using base::crc32c;

namespace {

std::vector<std::byte> random_bytes(std::size_t count) {
    std::mt19937_64 random(count + 1);
    std::vector<std::byte> bytes(count);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    return bytes;
}

/// By the definition, bit by bit.
std::uint32_t slowly(std::span<const std::byte> bytes) {
    std::uint32_t rest = ~0U;
    for (const auto byte : bytes) {
        rest ^= static_cast<std::uint32_t>(byte);
        for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ ((rest & 1) != 0 ? 0x82f63b78 : 0);
    }
    return ~rest;
}

}  // namespace

TEST_CASE("crc32c: the known answers", "[base][crc32c]") {
    // RFC 3720, B.4.
    std::array<std::byte, 32> data{};
    std::array<std::byte, 48> command{};
    static constexpr std::array<std::uint8_t, 48> read_command{
        0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
        0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0,    0};
    std::memcpy(command.data(), read_command.data(), command.size());
    for (const auto& way : base::crc32c_ways()) {
        INFO(way.name);
        data.fill(std::byte{0});
        CHECK(way.checksum(data, 0) == 0x8a9136aa);
        data.fill(std::byte{0xff});
        CHECK(way.checksum(data, 0) == 0x62a8ab43);
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i);
        CHECK(way.checksum(data, 0) == 0x46dd794e);
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(31 - i);
        CHECK(way.checksum(data, 0) == 0x113fdb5c);
        CHECK(way.checksum(command, 0) == 0xd9963a56);
        // The check value of catalogues of CRCs.
        CHECK(way.checksum(std::as_bytes(std::span(std::string_view("123456789"))), 0) == 0xe3069283);
        CHECK(way.checksum({}, 0) == 0);
    }
}

TEST_CASE("crc32c: every way, length and alignment gives the same", "[base][crc32c]") {
    const auto bytes = random_bytes(10'000);
    for (const std::size_t offset : {0, 1, 2, 3, 4, 5, 6, 7}) {
        for (std::size_t count = 0; count + offset < bytes.size(); count += count < 80 ? 1 : 331) {
            const auto some = std::span(bytes).subspan(offset, count);
            const auto expected = slowly(some);
            for (const auto& way : base::crc32c_ways()) {
                if (way.checksum(some, 0) == expected) continue;
                FAIL(way.name << " is wrong for " << count << " bytes at " << offset);
            }
        }
    }
    CHECK(crc32c(bytes) == slowly(bytes));
}

TEST_CASE("crc32c: part by part gives the same as at once", "[base][crc32c]") {
    const auto bytes = random_bytes(20'000);
    std::mt19937_64 random(7);
    for (const auto& way : base::crc32c_ways()) {
        INFO(way.name);
        const auto whole = way.checksum(bytes, 0);
        for (int round = 0; round < 50; ++round) {
            std::uint32_t sum = 0;
            for (auto rest = std::span(bytes); !rest.empty();) {
                const auto count = std::min<std::size_t>(random() % (round % 2 == 0 ? 9000 : 50), rest.size());
                sum = way.checksum(rest.first(count), sum);
                rest = rest.subspan(count);
            }
            REQUIRE(sum == whole);
        }
    }
}

TEST_CASE("crc32c: any one wrong bit shows", "[base][crc32c]") {
    auto bytes = random_bytes(300);
    const auto right = crc32c(bytes);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] ^= std::byte{1} << bit % 8;
        REQUIRE(crc32c(bytes) != right);
        bytes[bit / 8] ^= std::byte{1} << bit % 8;
    }
}

#include "tools/pattern.hpp"

#include <catch2/catch.hpp>

#include <vector>

#include "tools/buffers.hpp"

using namespace railmux::tools;  // NOLINT: the functions under test

namespace {

constexpr std::uint64_t seed = 42;

std::vector<std::byte> message(std::size_t size, std::uint64_t index) {
    std::vector<std::byte> bytes(size);
    fill(bytes, seed);
    stamp(bytes, seed, index);
    return bytes;
}

}  // namespace

TEST_CASE("a message as sent is right in every byte, and wrong in any that changed", "[tools]") {
    for (const std::size_t size : {0U, 1U, 7U, 8U, 9U, 15U, 16U, 17U, 24U, 31U, 100U, 4096U}) {
        INFO(size);
        auto bytes = message(size, 3);
        CHECK(stamped(bytes, seed, 3));
        CHECK_FALSE(first_difference(bytes, seed, 3).has_value());
        for (std::size_t at = 0; at < size; ++at) {
            bytes[at] ^= std::byte{0x10};
            CHECK(first_difference(bytes, seed, 3) == at);
            bytes[at] ^= std::byte{0x10};
        }
    }
}

TEST_CASE("the stamp tells one message from another", "[tools]") {
    const auto bytes = message(64, 3);
    CHECK_FALSE(stamped(bytes, seed, 4));
    CHECK_FALSE(stamped(bytes, seed + 1, 3));
    CHECK(first_difference(bytes, seed, 4) == 0u);
    auto tail_of_another = message(64, 3);
    const auto other = message(64, 4);
    std::copy(other.end() - 8, other.end(), tail_of_another.end() - 8);
    CHECK_FALSE(stamped(tail_of_another, seed, 3));
}

TEST_CASE("a shifted body is found", "[tools]") {
    auto bytes = message(256, 0);
    std::copy(bytes.begin() + 40, bytes.begin() + 200, bytes.begin() + 32);
    CHECK(first_difference(bytes, seed, 0) == 32u);
}

TEST_CASE("buffers are aligned, apart, and big enough", "[tools]") {
    Buffers buffers;
    buffers.resize(5000, 3);
    for (std::uint64_t i = 0; i < 3; ++i) {
        CHECK(reinterpret_cast<std::uintptr_t>(buffers[i].data()) % Buffers::page == 0);
        CHECK(buffers[i].size() == 5000);
    }
    CHECK(buffers[1].data() - buffers[0].data() == 8192);
    buffers.resize(8, 64);
    CHECK(buffers[1].data() - buffers[0].data() == 64);
    CHECK(buffers.all().size() == 64 * 64);
    buffers.resize(0, 1);
    CHECK(buffers[0].empty());
}

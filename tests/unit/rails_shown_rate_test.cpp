#include "rails/shown_rate.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <span>

using railmux::rails::ShownRate;

namespace {

constexpr std::size_t size = ShownRate::size;

std::array<std::byte, size> written(const ShownRate& rate) {
    std::array<std::byte, size> bytes{};
    rate.write(bytes.data());
    return bytes;
}

}  // namespace

TEST_CASE("a shown rate is read as it was written, and not from too few bytes", "[rails]") {
    const auto bytes = written({.rail = 3, .remote_rail = 63, .per_byte = railmux::sched::to_ticks(80.5)});
    const auto read = ShownRate::read(bytes);
    REQUIRE(read);
    CHECK(read->rail == 3);
    CHECK(read->remote_rail == 63);
    CHECK(read->per_byte == railmux::sched::to_ticks(80.5));
    CHECK_FALSE(ShownRate::read(std::span(bytes).first(size - 1)));
    CHECK_FALSE(ShownRate::read({}));
    CHECK(bytes == std::array{std::byte{3}, std::byte{0}, std::byte{63}, std::byte{0}, std::byte{0x00}, std::byte{0x42},
                              std::byte{0x01}, std::byte{0}});
}

TEST_CASE("a rate that does not fit is told as the slowest that does", "[rails]") {
    const auto told =
        ShownRate::read(written({.rail = 1, .remote_rail = 2, .per_byte = railmux::sched::to_ticks(8e9)}));
    REQUIRE(told);
    CHECK(told->per_byte == std::numeric_limits<std::uint32_t>::max());
    CHECK(ShownRate::read(written({}))->per_byte == 0);
}

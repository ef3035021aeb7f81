#include "tools/control.hpp"

#include <fmt/format.h>
#include <array>
#include <catch2/catch.hpp>

#include <railmux/error.hpp>

#include "tools/buffers.hpp"

using namespace railmux::tools;  // NOLINT: the functions under test

TEST_CASE("orders and replies survive the way", "[tools]") {
    const Order order{.action = Action::stream,
                      .direction = Direction::both,
                      .check = Check::all,
                      .bytes = 1ull << 33,
                      .count = 17,
                      .window = 64,
                      .buffers = 3,
                      .seed = ~0ull};
    CHECK(decode_order(encode(order)) == order);
    CHECK(decode_order(encode(Order{})) == Order{});
    std::array<std::byte, railmux::RemoteKey::size> key{};
    key.fill(std::byte{7});
    const Reply reply{
        .messages = 5, .bytes = 40, .faults = 1, .key = railmux::RemoteKey::from(key), .problem = "message 3: wrong"};
    CHECK(decode_reply(encode(reply)) == reply);
    CHECK(encode(Reply{.problem = std::string(5000, 'x')}).size() <= control_limit);
    CHECK_NOTHROW(decode_reply(encode(Reply{.problem = std::string(5000, 'x')})));
}

TEST_CASE("malformed orders and replies are refused", "[tools]") {
    const auto good = encode(Order{.action = Action::pingpong});
    for (std::size_t size = 4; size < good.size(); ++size) {
        CHECK_THROWS_AS(decode_order(std::span(good).first(size)), railmux::Error);
    }
    auto longer = good;
    longer.push_back(std::byte{0});
    CHECK_THROWS_AS(decode_order(longer), railmux::Error);
    for (std::size_t at = 4; at < 7; ++at) {
        auto bad = good;
        bad[at] = std::byte{9};
        CHECK_THROWS_AS(decode_order(bad), railmux::Error);
    }
    CHECK_THROWS_AS(decode_order(encode(Order{.window = 0})), railmux::Error);
    CHECK_THROWS_AS(decode_order(encode(Order{.buffers = 0})), railmux::Error);
    auto other_version = encode(Reply{});
    other_version[0] = std::byte{99};
    CHECK_THROWS_WITH(decode_reply(other_version),
                      fmt::format("the other side's tool speaks version 99, this one {}", control_version));
}

TEST_CASE("the window is reduced for messages that would need too much memory", "[tools]") {
    CHECK(affordable_window(0, 64) == 64);
    CHECK(affordable_window(1 << 20, 64) == 64);
    CHECK(affordable_window(1 << 30, 64) == 1);
    CHECK(affordable_window(64 << 20, 64) == 8);
}

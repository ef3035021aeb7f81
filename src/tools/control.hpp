// What the two sides of a measurement tell each other, over railmux itself.
//
//   driver                            server
//   order  ------------------------>          what to do
//          <------------------------  ready   buffers and receives stand, or why not
//   ======  messages on the data tag  ======
//          <------------------------  arrived (stream only; empty) the last message is here: the clock stops
//   verify ------------------------>          (empty)
//          <------------------------  verdict what was received and whether it was right
//
// `arrived` and `verify` are empty so that nothing but measured payload is counted between ready and verdict.
//
// Threads: values and pure functions.
// Lifetime: owns what it holds.
#pragma once

#include <railmux/one_sided.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace railmux::tools {

inline constexpr Tag order_tag = 0x7261'696c'6d75'7801;  // "railmux", then a number
inline constexpr Tag reply_tag = order_tag + 1;
inline constexpr Tag arrived_tag = order_tag + 2;
inline constexpr Tag verify_tag = order_tag + 3;
inline constexpr Tag data_tag = order_tag + 4;
inline constexpr Tag go_tag =
    order_tag + 5;  // empty: the driver has read its counters; a side that streams back may begin

/// Raised with every change of this file's messages or of what they mean.
inline constexpr std::uint32_t control_version = 3;

enum class Action : std::uint8_t { finish = 0, pingpong = 1, stream = 2, put = 3, get = 4, atomic = 5 };
/// The driver reaches into the server's memory (access.hpp).
[[nodiscard]] constexpr bool one_sided(Action action) noexcept { return action >= Action::put; }
enum class Direction : std::uint8_t { to_server = 0, both = 1 };
enum class Check : std::uint8_t {
    stamps = 0,  ///< each message's length and both ends, and the whole of the last message in each buffer
    all = 1,     ///< every byte of every message; for warm-up, where time does not count
};

struct Order {
    Action action = Action::finish;
    Direction direction = Direction::to_server;
    Check check = Check::stamps;
    std::uint64_t bytes = 0;
    std::uint64_t count = 0;    ///< messages each way
    std::uint64_t window = 1;   ///< messages under way at a time; of a ping-pong: as many there, as many back
    std::uint64_t buffers = 1;  ///< distinct buffers; with fewer than the window, messages under way share them
    std::uint64_t seed = 0;     ///< of the content: forth by the seed, back by its complement
    friend bool operator==(const Order&, const Order&) = default;

    [[nodiscard]] bool shares_buffers() const noexcept { return buffers < window; }
    /// What message `index` is stamped with. Messages that share a buffer must not differ.
    [[nodiscard]] std::uint64_t number(std::uint64_t index) const noexcept { return shares_buffers() ? 0 : index; }
};

/// ready (only `problem` and `key` count) and verdict.
struct Reply {
    std::uint64_t messages = 0;  ///< received
    std::uint64_t bytes = 0;
    std::uint64_t faults = 0;  ///< messages of wrong length or content
    RemoteKey key;             ///< of one-sided actions: the server's memory
    std::string problem;       ///< for people: the first fault, or why the server cannot do it; empty when all is well
    friend bool operator==(const Reply&, const Reply&) = default;
};

/// Encoded messages have at most this many bytes.
inline constexpr std::size_t control_limit = 1024;

[[nodiscard]] std::vector<std::byte> encode(const Order& order);
[[nodiscard]] std::vector<std::byte> encode(const Reply& reply);

/// Throw Error(protocol) on anything malformed, Error(wrong_version) when the other side's tool is of another version.
[[nodiscard]] Order decode_order(std::span<const std::byte> bytes);
[[nodiscard]] Reply decode_reply(std::span<const std::byte> bytes);

}  // namespace railmux::tools

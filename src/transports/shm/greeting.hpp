// Greeting: what the two sides of a link say over its unix socket before it is up. Afterwards the socket is silent; that it
// hangs up is how each side learns that the other has gone.
//
//   hello    of the side that connects; with it go the memory, the eventfd that wakes it, and its board
//   reply    of the side that accepts; with it go its eventfd and its board
//   refusal  instead of a reply
//
// One message of the socket each: u32 magic, u16 version, u8 kind, u8 flags, u32 bytes of a Block, u32 length of the body,
// u64 address of the rail's mark in the sender's memory, u64 the mark, the body. Magic, version and kind never move.
//
// Threads: values.
// Lifetime: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transports/shm/block.hpp"

namespace railmux::transports::shm {

inline constexpr std::uint16_t wire_version = 4;

enum class GreetingKind : std::uint8_t { hello = 1, reply = 2, refusal = 3 };

struct Greeting {
    static constexpr std::size_t size = 32;
    static constexpr std::size_t max_body = 1024;

    GreetingKind kind{};
    std::uint16_t version = wire_version;
    bool strict = false;  // waking.hpp
    std::uint64_t mark_address = 0;
    std::uint64_t mark = 0;
    std::span<const std::byte> body;  // views what was parsed

    [[nodiscard]] std::vector<std::byte> encode() const;
};

enum class Parsed : std::uint8_t { complete, malformed, other_version };
[[nodiscard]] Parsed parse(std::span<const std::byte> bytes, Greeting& greeting) noexcept;

}  // namespace railmux::transports::shm

// The messages of an ofi rail, little endian. Each begins with the link it is for, as its receiver knows it: the place and a
// random token, so that nobody else can speak on a link.
//
//   any      u8 kind, u8 flags, u16 number, u32 place, u64 token                                       16 bytes
//   frame    its bytes
//   put      u64 id, u64 secret, u64 offset, u32 immediate, u32 rest, u32 CRC32C of these; its bytes    52 bytes and they
//   hello    u32 magic, u16 version, u32 place, u64 token (of the sender's link), its address, the hello
//   heard    (the hello has come, and waits for whoever answers it)
//   reply    u32 place, u64 token (of the sender's link), the reply
//   refusal  the reply
//   bye      u32 place, u64 token (of the sender's link)
//
// Frames and puts of a link are numbered together, because providers complete large messages after small ones that were sent
// later. A large put is many messages; `rest` counts the bytes of those to come.
//
// Threads: pure functions over values.
// Lifetime: values; parsed bodies view the message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transports/transport.hpp"

namespace railmux::transports::ofi {

inline constexpr std::uint16_t wire_version = 3;
inline constexpr std::uint32_t no_place = ~std::uint32_t{0};

enum class Kind : std::uint8_t { frame = 1, put, hello, heard, reply, refusal, bye };

/// One side of a link, as the other side names it.
struct LinkName {
    std::uint32_t place = no_place;
    std::uint64_t token = 0;
    friend bool operator==(const LinkName&, const LinkName&) = default;
};

struct Header {
    static constexpr std::size_t size = 16;
    static constexpr std::uint8_t notify = 1;         // put: its last message
    static constexpr std::uint8_t other_version = 1;  // refusal: the hello was of another version

    Kind kind = Kind::frame;
    std::uint8_t flags = 0;
    std::uint16_t number = 0;
    LinkName to;
};

struct PutHeader {
    static constexpr std::size_t size = 36;  // behind the Header

    RegionKey key;
    std::uint64_t offset = 0;
    std::uint32_t immediate = 0;
    std::uint32_t rest = 0;
};

inline constexpr std::size_t frame_bytes = 64 * 1024;
// A put comes in pieces: small enough to be copied while in the cache, or larger where the provider fetches large messages
// (Port::fetches). rxm copies up to 128 KiB at both sides, in parts of 16 KiB, and what is larger goes straight from one buffer
// into the other.
inline constexpr std::size_t piece_bytes = 64 * 1024;
inline constexpr std::size_t fetched_piece_bytes = 256 * 1024;
inline constexpr std::size_t put_overhead = Header::size + PutHeader::size;
inline constexpr std::uint32_t least_message = put_overhead + piece_bytes;  // every rail takes one of so many bytes
static_assert(least_message >= Header::size + frame_bytes);
inline constexpr std::size_t max_hello = 256;
inline constexpr std::size_t max_reply = 256;
inline constexpr std::size_t max_address = 256;  // of a rail, as transport.hpp has it

struct Hello {
    std::uint16_t version = wire_version;
    LinkName from;
    std::span<const std::byte> address;
    std::span<const std::byte> bytes;
};

/// Writes 16 bytes.
void write(std::byte* to, const Header& header) noexcept;
/// Writes 36 bytes.
void write(std::byte* to, const PutHeader& header) noexcept;
[[nodiscard]] std::vector<std::byte> encode(const Header& header, const Hello& hello);
/// Reply and bye: with the sender's name.
[[nodiscard]] std::vector<std::byte> encode(const Header& header, const LinkName& from,
                                            std::span<const std::byte> bytes);
/// Refusal.
[[nodiscard]] std::vector<std::byte> encode(const Header& header, std::span<const std::byte> bytes);

// Nothing when malformed. `bytes` shrinks to what stands behind the header.
[[nodiscard]] std::optional<Header> take_header(std::span<const std::byte>& bytes) noexcept;
[[nodiscard]] std::optional<PutHeader> take_put_header(std::span<const std::byte>& bytes) noexcept;
[[nodiscard]] std::optional<LinkName> take_name(std::span<const std::byte>& bytes) noexcept;
/// Up to the address it is the same in all versions, so that one can refuse the other.
[[nodiscard]] std::optional<Hello> parse_hello(std::span<const std::byte> bytes) noexcept;

}  // namespace railmux::transports::ofi

// The byte stream of a tcp link, little endian; within TLS, where encryption is on. First each side greets once: magic, wire
// version, kind, length, bytes.
// Then works follow each other, each with a header:
//
//   send  u8 kind=1, u8 0, u16 0, u32 length                                             8 bytes
//   put   u8 kind=2, u8 notify, u16 0, u32 length, u64 id, u64 secret, u64 offset,
//         u32 immediate, u32 CRC32C of all before it                                     40 bytes
//
// A put says where its bytes go. Changed on the way that could be a place whose bytes have been checked and counted: so nothing
// is written for one that is not as it was sent. A frame has a checksum of its own, where that is wanted.
//
// Threads: pure functions over values.
// Lifetime: values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transports/transport.hpp"

namespace railmux::transports::tcp {

inline constexpr std::uint16_t stream_version = 2;
inline constexpr std::uint32_t max_frame = 64 * 1024;
inline constexpr std::uint32_t max_put = 1U << 30;

// other_encryption: a refusal by who encrypts and sees that the other side does not, or the other way round; never encrypted.
enum class GreetingKind : std::uint8_t { hello = 1, reply = 2, refusal = 3, other_encryption = 4 };

struct Greeting {
    static constexpr std::size_t size = 12;
    static constexpr std::size_t max_body = 256;
    using Bytes = std::array<std::byte, size>;

    std::uint16_t version = stream_version;
    GreetingKind kind = GreetingKind::hello;
    std::uint16_t length = 0;
};

enum class Parsed : std::uint8_t { incomplete, complete, malformed, corrupted, other_version };

[[nodiscard]] Greeting::Bytes encode(const Greeting& greeting) noexcept;
[[nodiscard]] Parsed parse(std::span<const std::byte> bytes, Greeting& greeting) noexcept;

/// How TLS begins: a record (RFC 8446, 5.1) that is one whole message of the handshake, or an alert. Enough of it is looked at
/// to leave to OpenSSL only what could be a peer.
struct TlsOpening {
    static constexpr std::size_t record_header = 5;
    static constexpr std::size_t header_size = record_header + 4;  // with that of the message
    static constexpr std::size_t max_size = 512;                   // ours have half of that

    std::size_t size = 0;       // of the record with its header
    bool client_hello = false;  // what a connector begins with

    /// How many bytes to read before it can be seen more than `seen` show.
    [[nodiscard]] static std::size_t wanted_after(std::size_t seen) noexcept {
        return seen < record_header ? record_header : header_size;
    }
};

/// A record of TLS with the alert that says: you do not know the key (RFC 8446, 6.2).
inline constexpr std::array tls_decrypt_error{std::byte{21}, std::byte{3}, std::byte{3}, std::byte{0},
                                              std::byte{2},  std::byte{2}, std::byte{51}};

/// Whether something that begins so could be TLS.
[[nodiscard]] bool looks_like_tls(std::span<const std::byte> bytes) noexcept;
[[nodiscard]] Parsed parse(std::span<const std::byte> bytes, TlsOpening& opening) noexcept;

struct StreamHeader {
    static constexpr std::size_t send_size = 8;
    static constexpr std::size_t put_size = 40;
    static constexpr std::size_t max_size = put_size;

    Op op = Op::send;
    bool notify = false;
    std::uint32_t length = 0;
    RegionKey key;
    std::uint64_t offset = 0;
    std::uint32_t immediate = 0;

    [[nodiscard]] std::size_t size() const noexcept { return op == Op::send ? send_size : put_size; }
};

/// Writes the header of a work that carries `length` bytes; returns its size.
std::size_t write_header(std::byte* to, const Work& work, std::uint32_t length) noexcept;
/// Parses the header at the front of `bytes`.
[[nodiscard]] Parsed parse(std::span<const std::byte> bytes, StreamHeader& header) noexcept;

}  // namespace railmux::transports::tcp

// What handshakes need: unguessable numbers and proofs that a key is known.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace railmux::base {

/// Fills with bytes from the kernel's random source. Throws Error(system) in the rare case that it has none.
void fill_random(std::span<std::byte> bytes);
[[nodiscard]] std::uint64_t random_u64();

using Digest = std::array<std::byte, 32>;

/// HMAC-SHA256 (RFC 2104) over the parts as if they stood in one piece; frame the parts so that their borders are
/// unambiguous. Throws Error(system) when the crypto library refuses.
[[nodiscard]] Digest hmac_sha256(std::span<const std::byte> key,
                                 std::initializer_list<std::span<const std::byte>> parts);

/// Compares in a time that depends on the sizes only.
[[nodiscard]] bool equal_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) noexcept;

/// Lower-case hexadecimal.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);

}  // namespace railmux::base

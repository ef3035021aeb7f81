// The content of measured messages, so that the receiver can tell each byte from a wrong, stale or shifted one.
//
// A message is a body, the same for all messages of a series, with the message's stamp over its first and last 8 bytes.
// Stamps are cheap enough (two cache lines) to write and check for every message inside the timed part. Bodies are
// checked where no clock runs.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace railmux::tools {

/// Writes the body of a series.
void fill(std::span<std::byte> message, std::uint64_t seed) noexcept;

/// Overwrites the message's ends with the stamp of message `index`; with all that fits when it is shorter than 16
/// bytes.
void stamp(std::span<std::byte> message, std::uint64_t seed, std::uint64_t index) noexcept;

/// Whether it carries exactly that stamp.
[[nodiscard]] bool stamped(std::span<const std::byte> message, std::uint64_t seed, std::uint64_t index) noexcept;

/// The place of the first byte that is not as fill and stamp left it; nothing when all are right.
[[nodiscard]] std::optional<std::size_t> first_difference(std::span<const std::byte> message, std::uint64_t seed,
                                                          std::uint64_t index) noexcept;

}  // namespace railmux::tools

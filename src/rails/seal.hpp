// Seal: the checksums behind each frame of a link that has them (parameter link.checksum): u32 CRC32C of the bytes that the
// frame's put has put (0 without one), u32 CRC32C of all before it: header, body and the first. A fin thus carries the sum of
// its bulk under its own.
//
// Threads: pure functions.
// Lifetime: values; an opened frame is a part of what was given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rails/frame.hpp"

namespace railmux::rails {

struct Seal {
    static constexpr std::size_t size = 8;
};

/// Writes the seal behind the frame, whose header is final.
void seal(Frame& frame) noexcept;

struct Opened {
    std::span<const std::byte> frame;  // without its seal
    std::uint32_t put_sum = 0;
};

/// Nothing if these are not the bytes that were sealed.
[[nodiscard]] std::optional<Opened> open_sealed(std::span<const std::byte> bytes) noexcept;

}  // namespace railmux::rails

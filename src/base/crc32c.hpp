// CRC32C: the checksum of iSCSI (RFC 3720, B.4) and of many file systems, polynomial 0x1edc6f41: it finds every burst of up to
// 32 wrong bits, and misses one in 4 thousand millions of other errors. Processors have an instruction for it.
//
// Threads: pure functions.
// Lifetime: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace railmux::base {

/// The checksum of what `before` is the checksum of, with `bytes` behind it: by the fastest way that this processor knows.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// One way to compute it.
struct Crc32cWay {
    std::string_view name;
    std::uint32_t (*checksum)(std::span<const std::byte> bytes, std::uint32_t before) noexcept = nullptr;
};

/// The ways that this processor knows, the fastest last.
[[nodiscard]] std::span<const Crc32cWay> crc32c_ways() noexcept;

}  // namespace railmux::base

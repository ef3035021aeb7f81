// Values as people write them: "64K", "100us", "yes", "5000-5100", "100M" of bits.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace railmux::base {

/// A plain decimal number; nothing on anything else or on overflow.
[[nodiscard]] std::optional<std::uint64_t> parse_count(std::string_view text) noexcept;

/// Bytes: "65536", "64K", "64Ki", "64KiB" (K, M, G, T in powers of 1024, either case). "64KB" is refused: people mean
/// both 64000 and 65536 by it.
[[nodiscard]] std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept;

/// Bits per second: "1000000000", "100M", "1G" (K, M, G in powers of 1000, as of networks everywhere, either case).
[[nodiscard]] std::optional<std::uint64_t> parse_speed(std::string_view text) noexcept;

/// A span of time in nanoseconds: "100us", "2s", "1ms", "5min"; a number without unit counts in `plain_unit`.
[[nodiscard]] std::optional<std::uint64_t> parse_duration(std::string_view text, std::string_view plain_unit) noexcept;

/// 1/0, yes/no, on/off, true/false, in either case.
[[nodiscard]] std::optional<bool> parse_flag(std::string_view text) noexcept;

/// Ports first..last; 0..0 leaves the choice to the system.
struct PortRange {
    std::uint16_t first = 0;
    std::uint16_t last = 0;
    friend constexpr bool operator==(PortRange, PortRange) noexcept = default;
};

/// "0", "5000" or "5000-5100".
[[nodiscard]] std::optional<PortRange> parse_ports(std::string_view text) noexcept;

}  // namespace railmux::base

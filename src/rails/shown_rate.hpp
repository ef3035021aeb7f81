// ShownRate: what a process's traffic has shown of one of its rails, as it tells the peer at the other end of a link. Who sends
// bursts in turns needs the rates of all rails at both ends (Spreading), and only what went over a rail shows its own; so each
// answer to a timed frame tells of one link between the two, in turn.
//
// Threads: pure functions.
// Lifetime: values.
//
// On the wire: u32 the sender's rail, 65536 x the receiver's; u32 G, in 1/1024 ns a byte (docs/protocol.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "sched/ticks.hpp"

namespace railmux::rails {

struct ShownRate {
    static constexpr std::size_t size = 8;
    static_assert(sched::ticks_per_ns == 1024);

    std::uint16_t rail = 0;         // of the link, at the end of whoever tells
    std::uint16_t remote_rail = 0;  // ... and at the other one
    sched::Ticks per_byte = 0;      // G from there to here; 0: nothing was shown

    void write(std::byte* to) const noexcept {
        constexpr sched::Ticks most = std::numeric_limits<std::uint32_t>::max();
        base::store(to, rail | std::uint32_t{remote_rail} << 16);
        base::store(to + 4, static_cast<std::uint32_t>(std::clamp<sched::Ticks>(per_byte, 0, most)));
    }
    /// Nothing: there are too few bytes. What else they are anybody may have made up.
    [[nodiscard]] static std::optional<ShownRate> read(std::span<const std::byte> bytes) noexcept {
        if (bytes.size() < size) return std::nullopt;
        const auto link = base::load<std::uint32_t>(bytes.data());
        return ShownRate{static_cast<std::uint16_t>(link), static_cast<std::uint16_t>(link >> 16),
                         base::load<std::uint32_t>(bytes.data() + 4)};
    }
};

}  // namespace railmux::rails

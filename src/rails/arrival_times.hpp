// ArrivalTimes: what a peer says of a frame that it was asked to time. When a burst has ended nobody knows yet that it has, so
// its last frame cannot be asked for: the answer of the next frame that is timed tells of it, too.
//
// Threads: pure functions.
// Lifetime: values.
//
// On the wire: u64 timed, u64 before, u32 before_seq, u32 what the host says: 1 timed, 2 before (docs/protocol.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "base/clock.hpp"

namespace railmux::rails {

/// When something came.
struct Arrival {
    base::Nanoseconds at = 0;  // 0: nothing has
    bool by_host = false;      // its kernel or adapter says so; else the process, when it looked
};

struct ArrivalTimes {
    static constexpr std::size_t size = 24;

    Arrival timed;                 // by the clock of whoever it came to
    Arrival before;                // the same of the one before it, over the same link, of more than a few bytes
    std::uint32_t before_seq = 0;  // ... and its number

    void write(std::byte* to) const noexcept {
        const auto by_host = (timed.by_host ? 1U : 0U) | (before.by_host ? 2U : 0U);
        base::store(to, static_cast<std::uint64_t>(timed.at));
        base::store(to + 8, static_cast<std::uint64_t>(before.at));
        base::store(to + 16, before_seq);
        base::store(to + 20, by_host);
    }
    /// Nothing: there are too few bytes. What else they are anybody may have made up.
    [[nodiscard]] static std::optional<ArrivalTimes> read(std::span<const std::byte> bytes) noexcept {
        if (bytes.size() < size) return std::nullopt;
        const auto by_host = base::load<std::uint32_t>(bytes.data() + 20);
        const auto at = [&](std::size_t place, std::uint32_t bit) {
            return Arrival{static_cast<base::Nanoseconds>(base::load<std::uint64_t>(bytes.data() + place)),
                           (by_host & bit) != 0};
        };
        return ArrivalTimes{at(0, 1), at(8, 2), base::load<std::uint32_t>(bytes.data() + 16)};
    }
};

}  // namespace railmux::rails

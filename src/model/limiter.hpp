// Limiter: probes in the background take at most a share of their rail over any second while the application sends, all that
// measure over the same rail together.
//
// Threads: one thread at a time per object.
// Lifetime: owns its history of the last second.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/clock.hpp"

namespace railmux::model {

class Limiter {
public:
    static constexpr double share = 0.02;

    /// The bytes that are that share of a second, by G as known so far of the link that is measured.
    [[nodiscard]] static std::uint64_t most(double ns_per_byte) noexcept;

    /// When `bytes` may be sent without any second holding more than `most`; nothing when they are more than that.
    [[nodiscard]] std::optional<base::Nanoseconds> when(std::uint64_t bytes, std::uint64_t most, base::Nanoseconds now);
    void sent(std::uint64_t bytes, base::Nanoseconds now);

private:
    struct Entry {
        base::Nanoseconds at;
        std::uint64_t bytes;
    };
    void forget(base::Nanoseconds now);

    std::deque<Entry> recent_;  // within the last second
    std::uint64_t total_ = 0;   // of recent_
};

}  // namespace railmux::model

// Limiter: a probe in the background takes at most a share of its rail over any second while the application sends.
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
    static constexpr double default_share = 0.02;

    /// `ns_per_byte` is G of the rail as known so far.
    explicit Limiter(double ns_per_byte, double share = default_share) noexcept;

    void set_rate(double ns_per_byte) noexcept;

    /// When `bytes` may be sent without any second holding more than the share; nothing when they are more than any
    /// second has room for.
    [[nodiscard]] std::optional<base::Nanoseconds> when(std::uint64_t bytes, base::Nanoseconds now);
    void sent(std::uint64_t bytes, base::Nanoseconds now);

private:
    struct Entry {
        base::Nanoseconds at;
        std::uint64_t bytes;
    };
    void forget(base::Nanoseconds now);

    double share_;
    std::uint64_t limit_ = 0;   // bytes in any second
    std::deque<Entry> recent_;  // within the last second
    std::uint64_t total_ = 0;   // of recent_
};

}  // namespace railmux::model

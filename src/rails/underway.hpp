// Underway: how far what was handed to a link has come, as far as is known: over, when the process at the other end has
// acknowledged it, or nobody expects that any more; landed, when its host has it. A process that is busy leaves what has landed
// where it is, and that is no load of the rail.
//
// Counted in bytes, as if what was handed over first came first.
//
// Threads: one engine at a time. Pure: time is an argument.
// Lifetime: part of a Link.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"

namespace railmux::rails {

class Underway {
public:
    /// `idle`: when the rail was last.
    void handed(std::uint64_t bytes, base::Nanoseconds idle) noexcept {
        if (std::exchange(rail_idle_, idle) != idle) before_ = handed_;
        handed_ += bytes;
    }
    /// These are. Returns how many of them were not known to have landed.
    [[nodiscard]] std::uint64_t over(std::uint64_t bytes) noexcept {
        assert(unacknowledged() >= bytes);
        over_ += bytes;
        return move_landed(over_);
    }
    /// All but the last so many have landed. Returns how many of these were not known to have.
    [[nodiscard]] std::uint64_t landed_but(std::uint64_t unconfirmed) noexcept {
        host_tells_ = true;
        return move_landed(handed_ - std::min(unconfirmed, handed_));
    }

    [[nodiscard]] std::uint64_t unacknowledged() const noexcept { return handed_ - over_; }
    /// Whether the network says what has landed: it has been asked.
    [[nodiscard]] bool host_tells() const noexcept { return host_tells_; }
    /// Of these may be on the rail.
    [[nodiscard]] std::uint64_t on_the_way() const noexcept { return handed_ - landed_; }
    /// All that was ever handed over, and all that has landed.
    [[nodiscard]] std::uint64_t handed() const noexcept { return handed_; }
    [[nodiscard]] std::uint64_t landed() const noexcept { return landed_; }
    /// What was handed over since the rail was last idle, which was at `idle`.
    [[nodiscard]] std::uint64_t handed_since(base::Nanoseconds idle) const noexcept {
        return idle == rail_idle_ ? handed_ - before_ : 0;
    }

    /// Whether the network is to be asked what has landed: now and then, and not for a few bytes.
    [[nodiscard]] bool worth_asking(base::Nanoseconds now) noexcept {
        if (on_the_way() < least || now - asked_ < spacing) return false;
        asked_ = now;
        return true;
    }

private:
    // A system call, half a microsecond.
    static constexpr base::Nanoseconds spacing = 100 * base::microsecond;
    static constexpr std::uint64_t least = 2048;

    [[nodiscard]] std::uint64_t move_landed(std::uint64_t to) noexcept {
        return to <= landed_ ? 0 : to - std::exchange(landed_, to);
    }

    // over_ <= landed_ <= handed_
    std::uint64_t handed_ = 0;
    std::uint64_t landed_ = 0;
    std::uint64_t over_ = 0;
    std::uint64_t before_ = 0;         // handed over before the rail was idle
    base::Nanoseconds rail_idle_ = 0;  // ... which it was then
    base::Nanoseconds asked_ = 0;
    bool host_tells_ = false;
};

}  // namespace railmux::rails

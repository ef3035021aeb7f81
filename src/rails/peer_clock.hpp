// PeerClock: what a peer's clock says in terms of ours, from frames that it answered at once.
//
// A round trip tells how late a frame was only if nothing was late on its way back; a peer's clock tells without that. As in
// NTP (RFC 5905, section 8) the frame with the shortest round trip is believed, which spent half of it each way: what it is
// wrong by is less than half of that. Both clocks count from any moment, and drift apart by some parts in 100,000, so an old
// one is thought to have taken longer, until a newer one is better.
//
// Threads: one thread at a time.
// Lifetime: a value; of one process over there.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"

namespace railmux::rails {

class PeerClock {
public:
    /// What left at `sent` was there at `there`, by the peer's clock, which may be anything, and its answer here at `now`. The
    /// way there took `longer` than the way back, as far as is known; on an idle rail it takes `latency`.
    void answered(base::Nanoseconds sent, std::uint64_t there, base::Nanoseconds now, base::Nanoseconds longer,
                  base::Nanoseconds latency = 0) noexcept {
        const auto trip = now - sent;
        const auto way = (trip + std::min(longer, trip)) / 2;
        if (known_ && way > least_way(now) && !jumped(sent, there, now)) return;
        known_ = true;
        way_ = way;
        doubt_ = std::max<base::Nanoseconds>(way - latency, 0);
        at_ = now;
        offset_ = there - static_cast<std::uint64_t>(sent + way_);
    }
    [[nodiscard]] bool known() const noexcept { return known_; }
    /// When by our clock it was `there` over there, of something answered at `now`: after `sent`, that is sure.
    [[nodiscard]] base::Nanoseconds here(std::uint64_t there, base::Nanoseconds sent,
                                         base::Nanoseconds now) const noexcept {
        return std::clamp(static_cast<base::Nanoseconds>(there - offset_), sent, now);
    }
    /// The way there was no longer than that when it was shortest; what here() says is off by no more.
    [[nodiscard]] base::Nanoseconds least_way(base::Nanoseconds now) const noexcept {
        return way_ + (now - at_) / drift_part;
    }

    /// ... and by no more than that, if it did not take less than the latency that was known of its rail.
    [[nodiscard]] base::Nanoseconds doubt(base::Nanoseconds now) const noexcept {
        return doubt_ + (now - at_) / drift_part;
    }

private:
    /// By what was known it came before it was sent, or after it was answered: one of the clocks has been set.
    [[nodiscard]] bool jumped(base::Nanoseconds sent, std::uint64_t there, base::Nanoseconds now) const noexcept {
        const auto after = static_cast<base::Nanoseconds>(there - offset_ - static_cast<std::uint64_t>(sent));
        const auto doubt = least_way(now);
        return after < -doubt || after - doubt > now - sent;
    }

    static constexpr base::Nanoseconds drift_part = 16'384;  // 61 us a second: two poor clocks

    bool known_ = false;
    std::uint64_t offset_ = 0;
    base::Nanoseconds way_ = 0;
    base::Nanoseconds doubt_ = 0;
    base::Nanoseconds at_ = 0;
};

}  // namespace railmux::rails

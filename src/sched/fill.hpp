// Fill: how far ahead a rail is given bulk. As little as keeps it busy until it is looked at again, because what is given can
// no longer go another way.
//
// Looks are usually some 100 us apart. But a process may compute, or give its core to others, or be held up by a call that
// fills another rail; and then the rail runs dry. It carries less from then on, so it looks slower than it is, and is given
// even less: nothing else shows that. So one that is found dry though it had been given enough is given twice as much, and
// half of that again after each 100 ms in which it was not.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"

namespace railmux::sched {

/// A piece of bulk takes a rail about this long: shorter ones follow the plan more closely, longer ones cost less.
inline constexpr base::Nanoseconds piece_time = base::millisecond / 8;

class Fill {
public:
    /// Until the next acknowledgement, which may be kept back for 100 us, and by the peer's engine for longer.
    static constexpr base::Nanoseconds least = base::millisecond;

    /// Of what was given so many bytes are on the rail still.
    void looked(std::uint64_t left, base::Nanoseconds now) noexcept {
        if (!std::exchange(enough_, false) || left >= given_ / 8) return;
        span_ = std::min(2 * span(now), most);
        dry_ = now;
    }
    /// It has enough for now: so many bytes.
    void enough(std::uint64_t bytes) noexcept {
        enough_ = true;
        given_ = bytes;
    }
    /// Whatever is on it, there was a reason to give no more.
    void nothing() noexcept { enough_ = false; }
    /// As much as it carries in this time is enough.
    [[nodiscard]] base::Nanoseconds span(base::Nanoseconds now) const noexcept {
        return std::max(span_ >> std::clamp<base::Nanoseconds>((now - dry_) / half_life, 0, 62), least);
    }

private:
    static constexpr base::Nanoseconds most = 8 * base::millisecond;
    static constexpr base::Nanoseconds half_life = 100 * base::millisecond;

    base::Nanoseconds span_ = least;
    base::Nanoseconds dry_ = 0;  // when it was last found so
    std::uint64_t given_ = 0;
    bool enough_ = false;
};

}  // namespace railmux::sched

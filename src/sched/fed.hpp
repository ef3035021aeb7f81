// Fed: the rate of a rail that a process does hardly anything else but hand messages to.
//
// Where handing over takes most of the time, as over a shaper of 1 Gbit/s with bursts of 16 KiB (docs/model.md; the kernel, it
// seems, cuts packets for the shaper on the sender's core, and makes room by it), there is hardly a look at which nothing had
// been waiting, and what is left on the rail at a look is less than comes through until the next: no backlog shows a rate. A
// rail that is being fed for three quarters of the time is taken for busy, so bytes over time is, to some percent, the rate
// that this process gets out of it. Acknowledgements come for large pieces at once, and looks are milliseconds apart: it takes
// a time and bytes that are many of either.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace railmux::sched {

class Fed {
public:
    struct Shown {
        base::Nanoseconds time = 0;  // 0: nothing
        std::uint64_t bytes = 0;
    };
    /// The process was at it for so long.
    void handing(base::Nanoseconds time) noexcept { handing_ += time; }
    /// So much has come through by now, and something is left.
    [[nodiscard]] Shown came_through(std::uint64_t bytes, base::Nanoseconds now) noexcept {
        if (!open_) {
            *this = {};
            open_ = true;
            begin_ = now;
            return {};
        }
        bytes_ += bytes;
        const Shown shown{.time = now - begin_, .bytes = bytes_};
        if (shown.time < window_time || shown.bytes < window_bytes) return {};
        const bool fed = handing_ >= shown.time / 4 * 3;
        *this = {};
        open_ = true;
        begin_ = now;
        return fed ? shown : Shown{};
    }
    /// Something else happened on the rail, or its rate is known.
    void forget() noexcept { open_ = false; }

private:
    static constexpr base::Nanoseconds window_time = 90 * base::millisecond;
    static constexpr std::uint64_t window_bytes = 8 * 1024 * 1024;

    bool open_ = false;
    base::Nanoseconds begin_ = 0;
    base::Nanoseconds handing_ = 0;
    std::uint64_t bytes_ = 0;
};

}  // namespace railmux::sched

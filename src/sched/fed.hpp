// Fed: the rate of a rail that a process does hardly anything else but hand messages to.
//
// Handing over takes as long as the rail itself where the kernel does the rail's work meanwhile and makes room by it (a shaper
// that cuts large packets, on the sender's core): a call that was to fill a buffer returns milliseconds later, when most of
// what it took has come through. Then there is no look at which nothing had been waiting, and what is left on the rail at a
// look is less than comes through until the next: no backlog shows a rate. But a rail that is being fed is not idle, so over a
// time that went by with that bytes over time is the rate that this host gets out of it. Acknowledgements come for large pieces
// at once, and looks are rare: it takes a time that is long to both.
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

// SavedUp: the beginning of a backlog, as it passes a rail that has saved something up.
//
// A token bucket that was filled while the rail was idle lets that through at the speed of the line (Lateness), with a backlog
// behind it, too: where two processes send bursts in turn, half of each passes so. By all that came through such a rail seems
// to have up to the double of its rate, now and then, and its part of a large message lasts the longest. So what comes through
// in less than half of the time that it should take is left out until something takes its time, together with that, of which a
// part may have passed so, too. But more than networks are known to save up, without anything that takes its time, shows that
// the rail has become faster.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <cstdint>
#include <utility>

#include "base/clock.hpp"
#include "sched/ticks.hpp"

namespace railmux::sched {

class SavedUp {
public:
    /// What shows a rate.
    struct Shown {
        base::Nanoseconds time = 0;
        std::uint64_t bytes = 0;  // 0: nothing
    };
    /// The rail was idle.
    void idle() noexcept {
        over_ = begun_ = false;
        passed_ = 0;
    }
    /// So much of a backlog has come through, whether or not that shows anything.
    void passed(std::uint64_t bytes) noexcept { passed_ += bytes; }
    /// More has passed since it was idle than networks are known to save up.
    [[nodiscard]] bool used_up() const noexcept { return passed_ >= most; }
    /// A backlog of so many bytes came through in that time, where a byte is thought to take `per_byte`; 0: nobody knows.
    [[nodiscard]] Shown came_through(std::uint64_t bytes, base::Nanoseconds time, Ticks per_byte) noexcept {
        if (over_) return {time, bytes};
        over_ = to_ticks(time) / static_cast<Ticks>(bytes) >= per_byte / 2;
        if (over_) {
            at_once_ = {};
            return begun_ ? Shown{} : Shown{time, bytes};
        }
        begun_ = true;
        at_once_.time += time;
        at_once_.bytes += bytes;
        if (at_once_.bytes < most) return {};
        over_ = true;
        return std::exchange(at_once_, {});
    }

private:
    // Twice the bursts that networks are known to pass.
    static constexpr std::uint64_t most = 512 * 1024;

    bool over_ = false;         // what it had saved up is used up, or it had nothing
    bool begun_ = false;        // since it was idle something passed at once
    std::uint64_t passed_ = 0;  // since it was idle
    Shown at_once_;             // since something took its time
};

}  // namespace railmux::sched

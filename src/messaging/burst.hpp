// Burst: which of the messages that the application hands over leaves at once, and which waits for others to leave with them.
//
// A call that sends costs more than a small message, and as much for many of them. Nobody knows whether more will follow; but
// who calls again soon after the last call that sent is about to send several, and has them leave together with his next
// look. Soon is reckoned from the end of that call: from its beginning the next message would be late because the call took
// long, leave by itself, which keeps both ends' kernels busier, so that calls take longer, and so on for good.
// The first one leaves at once: it may be the only one, and somebody may wait for it. But where bursts went to and fro just
// now, and the peer has not answered the last one, it is not a lone one, nor is anybody idle for its sake. And who has a habit
// of looking right behind his bursts has them leave as a whole: a call and a packet of its own for the first one would have the
// others come later by more than it comes sooner.
//
// Threads: one engine at a time. Pure: time is an argument.
// Lifetime: a value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "base/in_line.hpp"
#include "messaging/habit.hpp"

namespace railmux::messaging {

class Burst {
public:
    /// Another message, of so many bytes. True: it is to leave at once, and whatever waits with it. `answered()` tells whether
    /// its peer is known to have got everything before it; `alone`, that nobody would have to be woken for what waits.
    template <typename Answered>
    [[nodiscard]] RAILMUX_IN_LINE bool add(std::size_t bytes, base::Nanoseconds now, bool alone,
                                           Answered answered) noexcept {
        if (waiting_ > 0 && now - added_ > soon) {
            bundled_.late(now - added_);
            whole_.late(now - added_);
        }
        added_ = now;
        const auto since = now - last_left_;
        if (waiting_ == 0 && since >= gap) {
            several_ = length_ > 1;
            length_ = 0;
        }
        ++length_;
        ++waiting_;
        bytes_ += bytes;
        if (bytes_ >= enough) return true;
        if (since < gap) return false;
        if (several_ && alone && whole_.shown()) return false;
        return !several_ || since >= pause || answered();
    }
    /// What was added last waits, and that took until `now`: so long it was not the application that was late.
    void put_away(base::Nanoseconds now) noexcept {
        if (waiting_ > 0) added_ = now;
    }
    /// Everything has left, by a call that was over at `now`; if nothing waited, it was a message that never does.
    void left(base::Nanoseconds now) noexcept {
        if (waiting_ == 0) length_ = 1;
        last_left_ = now;
        waiting_ = 0;
        bytes_ = 0;
    }
    /// Messages wait for the next look.
    [[nodiscard]] bool waiting() const noexcept { return waiting_ > 0; }

    /// Whoever has sent what waits looks for results at `now`, before it has left.
    void looked(base::Nanoseconds now) noexcept {
        if (now - added_ > soon) {
            if (waiting_ > 1) bundled_.late(now - added_);  // a lone one shares no frame
            whole_.late(now - added_);
            return;
        }
        if (waiting_ >= many) bundled_.prompt(waiting_ * saved_by_bundling);
        if (length_ > 1) whole_.prompt(saved_by_call);
    }
    /// Whether that comes right behind the last message, as far as is known: then even rails that gain nothing by it may be
    /// given this one later, as it is neither one of the first of its burst nor the first that waits. Who computes in between
    /// is not to find that nothing was sent.
    [[nodiscard]] bool prompt() const noexcept {
        return waiting_ >= not_put_off && length_ > not_put_off && bundled_.shown();
    }

private:
    // Soon: a few times what a call that sends costs.
    static constexpr base::Nanoseconds gap = 6 * base::microsecond;
    // Bursts that are further apart are nobody's stream, and leave nobody short of time for one call more.
    static constexpr base::Nanoseconds pause = 50 * base::microsecond;
    // So many bytes are worth a call by themselves, and the network should not stand idle.
    static constexpr std::size_t enough = 32 * 1024;

    // Messages of 8 bytes that share frames take some 160 ns less each, over sockets (docs/scheduling-figures.md, "Messages
    // that share calls": 19 and 31 MB/s); bursts of eight without a call of its own for the first one 5 us (ibidem, "Bursts
    // there and back"). That a message is sent late is the worse surprise, and counts for more.
    static constexpr base::Nanoseconds saved_by_bundling = 100;
    static constexpr base::Nanoseconds saved_by_call = base::microsecond;

    // Right behind: that is no time to compute anything. A burst is one of so many messages as gain something by it, of which
    // the first ones are not put off.
    static constexpr base::Nanoseconds soon = base::microsecond;
    static constexpr std::uint32_t many = 6;
    static constexpr std::uint32_t not_put_off = 2;

    base::Nanoseconds last_left_ = 0;
    base::Nanoseconds added_ = 0;  // the last message, or put away
    Habit bundled_;                // of looking right behind a burst of many,
    Habit whole_;                  // ... and of any
    std::size_t bytes_ = 0;        // of those that wait
    std::uint32_t waiting_ = 0;    // messages
    std::uint32_t length_ = 0;     // of the burst so far, in messages
    bool several_ = false;         // the burst before it had more than one
};

}  // namespace railmux::messaging

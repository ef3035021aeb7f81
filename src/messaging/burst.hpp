// Burst: which of the messages that the application hands over leaves at once, and which waits for others to leave with them.
//
// A call that sends costs more than a small message, and as much for many of them. Nobody knows whether more will follow; but
// who calls again soon after the last call that sent is about to send several, and has them leave together with his next
// look. Soon is reckoned from the end of that call: from its beginning the next message would be late because the call took
// long, leave by itself, which keeps both ends' kernels busier, so that calls take longer, and so on for good.
// The first one leaves at once: it may be the only one, and somebody may wait for it. But where bursts went to and fro just
// now, and the peer has not answered the last one, it is not a lone one, nor is anybody idle for its sake.
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
    /// its peer is known to have got everything before it.
    template <typename Answered>
    [[nodiscard]] RAILMUX_IN_LINE bool add(std::size_t bytes, base::Nanoseconds now, Answered answered) noexcept {
        if (waiting_ > 0 && now - added_ > soon) habit_.late(now - added_);
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
        return !several_ || since >= pause || answered();
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
    [[nodiscard]] bool several() const noexcept { return waiting_ > 1; }

    /// Whoever has sent several looks for results at `now`, before they have left.
    void looked(base::Nanoseconds now) noexcept {
        if (now - added_ > soon) {
            habit_.late(now - added_);
        } else if (waiting_ >= many) {
            habit_.prompt(waiting_);
        }
    }
    /// Whether that comes right behind the last message, as far as is known: then even rails that gain nothing by it may be
    /// given this one later, as it is not the first that waits. Who computes in between is not to find that nothing was sent.
    [[nodiscard]] bool prompt() const noexcept { return waiting_ >= not_put_off && habit_.shown(); }

private:
    // Soon: a few times what a call that sends costs.
    static constexpr base::Nanoseconds gap = 6 * base::microsecond;
    // Bursts that are further apart are nobody's stream, and leave nobody short of time for one call more.
    static constexpr base::Nanoseconds pause = 50 * base::microsecond;
    // So many bytes are worth a call by themselves, and the network should not stand idle.
    static constexpr std::size_t enough = 32 * 1024;

    // Right behind: that is no time to compute anything. A burst is one of so many messages as gain something by it, of which
    // the first ones are not put off.
    static constexpr base::Nanoseconds soon = base::microsecond;
    static constexpr std::uint32_t many = 6;
    static constexpr std::uint32_t not_put_off = 2;

    base::Nanoseconds last_left_ = 0;
    base::Nanoseconds added_ = 0;  // the last message
    Habit habit_;                  // of looking right behind a burst
    std::size_t bytes_ = 0;        // of those that wait
    std::uint32_t waiting_ = 0;    // messages
    std::uint32_t length_ = 0;     // of the burst so far, in messages
    bool several_ = false;         // the burst before it had more than one
};

}  // namespace railmux::messaging

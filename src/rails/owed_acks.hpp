// OwedAcks: what peers are owed, which is an acknowledgement of the frames that have come, and word of how much of that the
// application has taken. It goes with whatever is sent there anyway, or by itself when that does not come in time.
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager. Knows peers by number; what each is owed belongs to its conversation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/in_line.hpp"
#include "rails/session.hpp"

namespace railmux::rails {

class OwedAcks {
public:
    struct Options {
        base::Nanoseconds delay = 100 * base::microsecond;  // for which one waits for something to go with
        std::uint32_t credit_report = 4096;  // credit units consumed before the peer is told without delay
    };

    /// One peer.
    struct To {
        std::uint32_t frames = 0;  // that have come since the last acknowledgement went out
        std::uint32_t ahead = 0;   // ... of those that came ahead of others, which only a frame of its own tells
        // Of its data, by our application, in credit units, and as last told to it: both only grow, and wrap around.
        std::uint32_t consumed = 0;
        std::uint32_t reported = 0;
        base::Nanoseconds due = base::never;  // an acknowledgement must go by then; never: none is owed
        bool listed = false;

        [[nodiscard]] bool any() const noexcept { return frames > 0 || consumed != reported; }
        /// One came out of order, and some are `missing`. What goes with other frames tells how far none are; where a slow
        /// rail holds that up, and much is sent both ways, what came over fast ones would seem to be on them still.
        void came(bool missing) noexcept { ahead = missing ? ahead + 1 : 0; }
        /// An acknowledgement has just gone out with a frame: of all that came in order.
        void told() noexcept {
            frames = ahead;
            reported = consumed;
            if (ahead == 0) [[likely]]
                due = base::never;
        }
        /// ... by itself: of each that came.
        void told_all() noexcept {
            ahead = 0;
            told();
        }
    };

    explicit OwedAcks(Options options) : options_(options) {}

    [[nodiscard]] base::Nanoseconds delay() const noexcept { return options_.delay; }

    /// More than before is owed. True: run() is wanted by `to.due`.
    [[nodiscard]] RAILMUX_IN_LINE bool note(std::uint32_t peer, To& to, base::Nanoseconds now) {
        bool sooner = false;
        if (to.due == base::never) {
            to.due = now + options_.delay;
            if (!to.listed) [[unlikely]] {  // else it is looked at early enough
                list(peer, to);
                sooner = true;
            }
        }
        if (to.frames >= frames_each || to.consumed - to.reported >= options_.credit_report) [[unlikely]] {
            hurry(peer, to);
            sooner = true;
        }
        return sooner;
    }
    /// It goes with the next run(), which is wanted.
    void hurry(std::uint32_t peer, To& to) {
        to.due = 0;
        list(peer, to);
    }

    /// Calls send(peer) for those whose time has come. `owed(peer)` is what it is owed, or nullptr when that is over. Returns
    /// when it is wanted next.
    template <typename Owed, typename Send>
    [[nodiscard]] base::Nanoseconds run(base::Nanoseconds now, Owed owed, Send send) {
        auto next = base::never;
        std::erase_if(list_, [&](std::uint32_t peer) {
            To* const to = owed(peer);
            if (to == nullptr) return true;
            if (to->any() && to->due > now) {
                next = std::min(next, to->due);
                return false;
            }
            if (to->any()) send(peer);
            to->listed = false;
            to->due = base::never;
            return true;
        });
        return next;
    }

private:
    // Acknowledge at the latest after this many frames: a sixteenth of the window keeps the sender going, and one
    // acknowledgement in 256 frames costs next to nothing.
    static constexpr std::uint32_t frames_each = Session::window / 16;

    void list(std::uint32_t peer, To& to) {
        if (!std::exchange(to.listed, true)) list_.push_back(peer);
    }

    Options options_;
    std::vector<std::uint32_t> list_;  // peers that are owed one, or were lately
};

}  // namespace railmux::rails

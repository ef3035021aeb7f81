// KeepingUp: whether this process finds time for what comes in and what goes out, or is what messages wait for.
//
// A receiver that always finds something takes as long for it whichever rail it comes over. Its peers are told with each
// acknowledgement: what waits for us is no backlog of a rail, and another rail gains nothing but costs both sides looks,
// calls, and putting in order. Even before, each message over another rail costs us more, so half of the time must be free.
// And who always has something to send, and never has to wait, is not held up by the rails that he uses: another one would be
// one call more for the same messages. That is known for sure, so that little time will do.
//
// Threads: one thread at a time.
// Lifetime: a value.
#pragma once

#include "base/clock.hpp"

namespace railmux::rails {

class KeepingUp {
public:
    /// We looked for what has come in. Time between two looks in vain, without a message sent, is free, and no other.
    void looked(bool found, base::Nanoseconds now) noexcept {
        if (!found && !engaged_) free_ += now - last_;
        engaged_ = found;
        last_ = now;
        if (now - begun_ >= window) [[unlikely]]
            judge(now);
    }
    /// Up to now something would have woken us.
    void slept(base::Nanoseconds now) noexcept {
        engaged_ = false;
        looked(false, now);
    }
    /// A message goes out.
    void sending() noexcept { engaged_ = true; }

    /// We do not keep up: for others to know.
    [[nodiscard]] bool behind() const noexcept { return behind_; }
    /// We hardly ever wait: for who chooses.
    [[nodiscard]] bool busy() const noexcept { return busy_; }

private:
    // A few times as long as the longest look.
    static constexpr base::Nanoseconds window = 200 * base::microsecond;

    void judge(base::Nanoseconds now) noexcept {
        behind_ = 2 * free_ < now - begun_;
        busy_ = 8 * free_ < now - begun_;
        begun_ = now;
        free_ = 0;
    }

    base::Nanoseconds begun_ = 0;  // the window
    base::Nanoseconds last_ = 0;   // look
    base::Nanoseconds free_ = 0;   // time in the window
    bool engaged_ = false;         // something was found, or sent, since the look before
    bool behind_ = false;
    bool busy_ = false;
};

}  // namespace railmux::rails

// KeepingUp: whether this process finds time for what comes in, or is what others' messages wait for.
//
// A receiver that always finds something takes as long for it whichever rail it comes over. Its peers are told with each
// acknowledgement: what waits for us is no backlog of a rail, and another rail gains nothing but costs both sides looks,
// calls, and putting in order. Even before, each message over another rail costs us more, so half of the time must be free.
//
// Threads: one thread at a time.
// Lifetime: a value.
#pragma once

#include "base/clock.hpp"

namespace railmux::rails {

class KeepingUp {
public:
    /// We looked for what has come in. Time between two looks in vain is free, and no other.
    void looked(bool found, base::Nanoseconds now) noexcept {
        if (!found && !found_before_) free_ += now - last_;
        found_before_ = found;
        last_ = now;
        if (now - begun_ >= window) [[unlikely]]
            judge(now);
    }
    /// Up to now something would have woken us.
    void slept(base::Nanoseconds now) noexcept {
        found_before_ = false;
        looked(false, now);
    }
    [[nodiscard]] bool behind() const noexcept { return behind_; }

private:
    // A few times as long as the longest look.
    static constexpr base::Nanoseconds window = 200 * base::microsecond;

    void judge(base::Nanoseconds now) noexcept {
        behind_ = 2 * free_ < now - begun_;
        begun_ = now;
        free_ = 0;
    }

    base::Nanoseconds begun_ = 0;  // the window
    base::Nanoseconds last_ = 0;   // look
    base::Nanoseconds free_ = 0;   // time in the window
    bool found_before_ = false;
    bool behind_ = false;
};

}  // namespace railmux::rails

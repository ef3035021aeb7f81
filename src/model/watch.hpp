// Watch: for how long nobody may have seen a message that was there. A process looks at its network again and again; it
// may be computing between two looks, and the kernel may stop it anywhere, even inside a look.
//
// A message found by a look may have come since the look before it began. That span is always there, so only what
// exceeds the usual one counts.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <algorithm>

#include "base/clock.hpp"

namespace railmux::model {

class Watch {
public:
    /// A look begins; gives Sample::blind for what it will find. Cheap.
    base::Nanoseconds looks(base::Nanoseconds begin) noexcept {
        const auto span = last_begin_ < 0 ? 0 : begin - last_begin_;
        last_begin_ = begin;
        // Near the median of the spans: up and down by the same small part.
        usual_ = usual_ == 0 ? span : span > usual_ ? usual_ + usual_ / 16 + 1 : usual_ - usual_ / 16;
        return std::max<base::Nanoseconds>(0, span - 3 * usual_);
    }
    /// The process slept until something came: it was looking all the time.
    void woke(base::Nanoseconds now) noexcept { last_begin_ = now; }

private:
    base::Nanoseconds last_begin_ = -1;
    base::Nanoseconds usual_ = 0;
};

}  // namespace railmux::model

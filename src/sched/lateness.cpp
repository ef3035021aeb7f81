#include "sched/lateness.hpp"

#include <algorithm>

namespace railmux::sched {

Ticks Lateness::late(std::uint64_t bytes, base::Nanoseconds service, base::Nanoseconds now,
                     base::Nanoseconds window) noexcept {
    if (!open_) {
        reopen(now);
        return 0;
    }
    late_time_ += service;
    late_bytes_ += bytes;
    const auto time = now - begin_;
    if (time < window || bytes_ < window_bytes) return 0;
    Ticks learnt = 0;
    // Of two processes that answer each other with all they have, each rail is late half of the time.
    if (late_time_ >= time / 3) {
        learnt = to_ticks(time) / static_cast<Ticks>(bytes_);
    } else if (late_bytes_ >= bytes_ / 4 * 3) {  // it is hardly used, and slow whenever it is
        learnt = to_ticks(late_time_) / static_cast<Ticks>(late_bytes_);
    }
    reopen(now);
    return std::max<Ticks>(learnt, 0);
}

}  // namespace railmux::sched

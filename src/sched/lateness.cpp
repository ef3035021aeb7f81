#include "sched/lateness.hpp"

#include <algorithm>

namespace railmux::sched {

Lateness::Piece Lateness::since_mark(std::uint64_t bytes, base::Nanoseconds service, const Mark& end) const noexcept {
    Piece piece{.time = end.time - marked_.time, .bytes = end.bytes - marked_.bytes};
    const auto as_late = static_cast<double>(service) * static_cast<double>(piece.bytes) / static_cast<double>(bytes);
    const auto late = std::max(static_cast<double>(service), as_late);
    // What began before the mark was late before it, too: that is counted already.
    piece.late = static_cast<base::Nanoseconds>(std::min(late, static_cast<double>(piece.time)));
    return piece;
}

Ticks Lateness::late(std::uint64_t bytes, base::Nanoseconds service, const Mark& end,
                     base::Nanoseconds window) noexcept {
    if (end.bytes < floor_) return 0;
    if (!open_) {
        reopen(end);
        return 0;
    }
    if (!follows(end)) return 0;
    const Piece piece = since_mark(bytes, service, end);
    if (!marked_late_ || service <= piece.time) {
        ++late_count_;
        train_ = {};
    }
    marked_late_ = true;
    train_ += piece;
    late_time_ += piece.late;
    late_bytes_ += piece.bytes;
    if (train_.late > latest_.late) latest_ = train_;
    marked_ = end;
    const auto time = end.time - begin_.time - latest_.time;
    const auto sum = end.bytes - begin_.bytes - latest_.bytes;
    if (time < window || sum < window_bytes || late_count_ < enough) return 0;
    const auto late_time = late_time_ - latest_.late;
    const auto late_sum = late_bytes_ - latest_.bytes;
    Ticks learnt = 0;
    // Of two processes that answer each other with all they have, each rail is late half of the time, or a little less.
    if (sum > 0 && late_time >= time / 4) {
        learnt = to_ticks(time) / static_cast<Ticks>(sum);
        // Who is late with little, and idle for most of the time, is not as slow as that.
        if (late_sum > 0) learnt = std::min(learnt, 3 * to_ticks(late_time) / static_cast<Ticks>(late_sum));
    } else if (late_sum > 0 && late_sum >= sum / 4 * 3) {  // it is hardly used, and slow whenever it is
        learnt = to_ticks(late_time) / static_cast<Ticks>(late_sum);
    }
    reopen(end);
    return std::max<Ticks>(learnt, 0);
}

}  // namespace railmux::sched

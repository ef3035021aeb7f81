#include "sched/proven.hpp"

namespace railmux::sched {

void Proven::came_through(std::uint32_t messages, std::uint64_t bytes, base::Nanoseconds now, bool all) noexcept {
    count_ += messages;
    sum_ += bytes;
    if (open_) {
        if (now - begin_ < window || count_ < enough) return;
        const auto time = to_ticks(now - begin_);
        messages_.note({time / count_, sum_ / count_}, now);
        bytes_.note(std::max<Ticks>(time / static_cast<Ticks>(std::max<std::uint64_t>(sum_, 1)), 1), now);
    }
    // What came before the window and becomes known within it would make the rail look faster than it is.
    open_ = all;
    begin_ = now;
    count_ = 0;
    sum_ = 0;
}

}  // namespace railmux::sched

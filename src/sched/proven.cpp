#include "sched/proven.hpp"

namespace railmux::sched {

Ticks Proven::came_through(std::uint32_t messages, std::uint64_t bytes, base::Nanoseconds now, bool all) noexcept {
    short_.add(messages, bytes);
    long_.add(messages, bytes);
    if (short_.open && now - short_.begin >= window_time && short_.messages >= window_messages) {
        messages_.note({to_ticks(now - short_.begin) / short_.messages, short_.bytes / short_.messages}, now);
        bytes_.note(short_.per_byte(now), now);
        short_.open = false;
    }
    if (!short_.open) short_.reopen(now, all);
    Ticks sustained = 0;
    if (long_.open && long_.bytes >= sustained_bytes) {
        sustained = long_.per_byte(now);
        long_.open = false;
    }
    if (!long_.open) long_.reopen(now, all);
    return sustained;
}

}  // namespace railmux::sched

// shm::Rail: arm() and what follows it. waking.hpp has the protocol.
#include "transports/shm/rail.hpp"
#include "transports/shm/waking.hpp"

namespace railmux::transports::shm {

int Rail::arm() noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    if (!events_.empty()) return -1;
    for (const auto* link : active_) {
        say_asleep(*link->ours, link->waits_for_room() ? Sleep::until_room : Sleep::until_news);
    }
    if (!active_.empty() && !strict_) fence_everyone();
    armed_ = true;
    if (!something_came()) return epoll_.get();
    rise();
    return -1;
}

/// Whether a poll would find something: the second look, after we said that we sleep.
bool Rail::something_came() noexcept {
    for (auto* link : active_) {
        if (link->hung_up || link->reader.ready(std::memory_order_seq_cst) || asks_for_help(*link)) return true;
        if (link->phase == LinkPhase::ending && !still_used(*link)) return true;
        if (link->phase == LinkPhase::up && link->getting() && !still_written(*link)) return true;
        if (!link->waits_for_room()) continue;
        const auto before = link->writer.taken();
        if (!link->writer.look() || link->writer.taken() != before) return true;
        // The caller may have given up what was refused: it is told once that there is room.
        if (link->refused && link->refused_at != before) {
            link->refused = false;
            return true;
        }
    }
    return false;
}

/// Awake again: the next poll looks at everything.
void Rail::rise() noexcept {
    armed_ = false;
    for (const auto* link : active_) say_awake(*link->ours);
    next_look_ = polls_;
}

}  // namespace railmux::transports::shm

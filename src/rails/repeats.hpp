// Repeats: when links are measured again whose probes were disturbed.
//
// After so much time with traffic, and after four times as much each time that the probe is disturbed again: in no second more
// than one, and few in all. Whatever keeps processes from looking while a job begins has passed by then. Time without traffic
// does not count: processes that wait for nothing should not be busy with that.
//
// Threads: one thread at a time per object.
// Lifetime: a value; slots are those of live links.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"

namespace railmux::rails {

class Repeats {
public:
    static constexpr base::Nanoseconds first = base::second;
    static constexpr std::uint32_t most = 3;  // of one link

    /// The probe of the link was disturbed, after `before` that were repeated. `busy` is a clock that stands while there is no
    /// traffic. False: it is not worth another one.
    bool add(std::uint32_t slot, std::uint32_t before, base::Nanoseconds busy) {
        if (before >= most) return false;
        waiting_.push_back({slot, busy + (first << 2 * before)});
        return true;
    }
    /// Those for which `over(slot)` holds: of links that end, or that are not to be measured any more.
    template <typename Over>
    void drop(Over over) {
        std::erase_if(waiting_, [&](const Waiting& one) { return over(one.slot); });
    }

    /// Calls `repeat(slot)` for those whose time has come. Returns when to ask again: seldom, because nobody knows how much
    /// traffic there will be until then.
    template <typename Repeat>
    [[nodiscard]] base::Nanoseconds due(base::Nanoseconds busy, base::Nanoseconds now, Repeat repeat) {
        auto left = base::never - now;
        std::erase_if(waiting_, [&](const Waiting& one) {
            if (one.due > busy) {
                left = std::min(left, std::max(one.due - busy, first));
                return false;
            }
            repeat(one.slot);
            return true;
        });
        return now + left;
    }

private:
    struct Waiting {
        std::uint32_t slot = 0;
        base::Nanoseconds due = 0;  // by the busy clock
    };
    std::vector<Waiting> waiting_;
};

}  // namespace railmux::rails

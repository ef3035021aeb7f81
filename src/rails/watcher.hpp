// Watcher: whether links that say nothing are still there. Looks at those that something is outstanding on (Silence), sends
// something over idle ones from time to time, so that their death would show, and gives up those that are silent for too long.
//
// A link is looked at from the first frame that goes over it while it is settled until all of it is confirmed, and costs
// nothing else: whoever sends over a settled one says so.
//
// Threads: one engine at a time. Time is an argument.
// Lifetime: owned by the rail manager; refers to its rails, links and peers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"
#include "rails/frame_pool.hpp"
#include "rails/link.hpp"
#include "rails/link_host.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"

namespace railmux::rails {

class Watcher {
public:
    struct Options {
        base::Nanoseconds keepalive =
            base::second / 4;                      // without traffic, until an idle link is looked after; 0: never
        base::Nanoseconds silence = base::second;  // of a link, until it is lost
        base::Nanoseconds unheard = 120 * base::second;  // ... whose network tells nothing
    };

    /// Pieces that are got have `largest_get` bytes at most.
    Watcher(const Options& options, std::uint64_t largest_get, const RailSet& rails, PeerTable& peers, LinkTable& links,
            FramePool& pool, LinkHost& host)
        : options_(options),
          largest_get_(largest_get),
          rails_(rails),
          peers_(peers),
          links_(links),
          pool_(pool),
          host_(host) {}

    // All of these return when look() is wanted.

    /// A link is live.
    [[nodiscard]] base::Nanoseconds link_up(base::Nanoseconds now) noexcept;
    /// Something is sent over a link that nobody looks at now.
    base::Nanoseconds unsettle(Link& link, base::Nanoseconds now) noexcept;
    /// Looks at the links that something is outstanding on and, each in its turn, at idle ones.
    [[nodiscard]] base::Nanoseconds look(base::Nanoseconds now);

private:
    void keep_alive(Link& link, base::Nanoseconds now);
    [[nodiscard]] base::Nanoseconds look_at(Link& link, base::Nanoseconds now);
    [[nodiscard]] Silence::Limits limits_of(const Link& link, base::Nanoseconds now) const noexcept;
    void ask(const Link& overdue, base::Nanoseconds now);
    [[nodiscard]] bool gone_unheard(Link& link, base::Nanoseconds now);
    [[nodiscard]] bool heard_elsewhere(const Link& silent, base::Nanoseconds now) const noexcept;

    static constexpr auto never = base::never;

    Options options_;
    std::uint64_t largest_get_;
    const RailSet& rails_;
    PeerTable& peers_;
    LinkTable& links_;
    FramePool& pool_;
    LinkHost& host_;
    base::Nanoseconds next_look_ = never;
    base::Nanoseconds next_turn_ = never;          // when idle ones are looked at, too
    base::Nanoseconds turn_ = options_.keepalive;  // between two turns of an idle one
};

}  // namespace railmux::rails

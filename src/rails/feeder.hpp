// Feeder: which link is given which piece of large messages next, and when. What the layer above offers for a peer goes by the
// plan (BulkPlan), in turn with what it offers for others, because they share the rails; what is to be got goes over whichever
// link has room, so that all of them are over at about the same time.
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; refers to its peers and links, to the plan, and to the layer above.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "rails/bulk_plan.hpp"
#include "rails/frame_pool.hpp"
#include "rails/ledger.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/regions.hpp"
#include "rails/upper.hpp"
#include "transports/transport.hpp"

namespace railmux::rails {

/// Of pieces that are got, where those that are put have so many bytes at most. Nothing plans which rail gets how much: whoever
/// is done takes the next one. And what both processors copy (docs/shm.md) is to be in their caches: 2 and 4 MiB in pieces of
/// 1 MiB took longer in four of seven rounds.
[[nodiscard]] constexpr std::uint64_t largest_get(std::uint64_t largest_put) noexcept {
    return std::min<std::uint64_t>(largest_put, 256 * 1024);
}

/// What the feeder asks of the rail manager.
class FeederHost {
public:
    /// The frame is the next of that conversation.
    virtual void number(Conversation& talk, Frame& frame, base::Nanoseconds now) = 0;
    /// It goes over this very link, behind what waits there. What it costs others is the caller's business.
    virtual void line_up(Link& link, Frame* frame, base::Nanoseconds now) = 0;

protected:
    ~FeederHost() = default;
};

class Feeder {
public:
    /// Pieces have `largest` bytes at most.
    Feeder(std::uint64_t largest, PeerTable& peers, LinkTable& links, BulkPlan& plan, Ledger& ledger,
           const Regions& regions, FramePool& pool, Upper& upper, FeederHost& host)
        : largest_(largest),
          peers_(peers),
          links_(links),
          plan_(plan),
          ledger_(ledger),
          regions_(regions),
          pool_(pool),
          upper_(upper),
          host_(host) {}

    // --- Bulk --------------------------------------------------------------------------------------------------------

    /// There is bulk for this peer, with which there is a session: it is given out by the next feed_all(), with what is offered
    /// for others until then, as what a rail is given cannot go another way any more.
    void offer(std::uint32_t peer) {
        note(peer);
        offered_ = true;
    }
    /// Links may take more. Bulk of one peer is given out at once; that of several by one feed_all() for all that a look has
    /// brought, which plans for all of them.
    void room_made(base::Nanoseconds now) { with_bulk_.size() > 1 ? void(offered_ = true) : feed_all(now); }
    /// Whether either was told since feed_all().
    [[nodiscard]] bool offered() const noexcept { return offered_; }
    /// Whether there is bulk for anybody.
    [[nodiscard]] bool any() const noexcept { return !with_bulk_.empty(); }
    /// To all links that have room, by one plan.
    void feed_all(base::Nanoseconds now);
    /// A live link is done with a piece.
    void piece_gone(Link& link, base::Nanoseconds now);
    /// A link is live: something may have waited for just this one.
    void link_up(Link& link, base::Nanoseconds now);
    /// The session with this peer is over.
    void forget(std::uint32_t peer) { std::erase(with_bulk_, peer); }

    // --- Gets --------------------------------------------------------------------------------------------------------

    /// There is something to get from this peer.
    void offer_gets(std::uint32_t peer, base::Nanoseconds now);
    /// The frame of a get ends, as the rail says, or with its link; it is released.
    void end_get(Link& link, Frame& frame, transports::WorkStatus status, base::Nanoseconds now);

private:
    void note(std::uint32_t peer) {
        if (!std::exchange(peers_[peer].talk->bulk_offered, true)) with_bulk_.push_back(peer);
    }
    void feed(std::uint32_t peer, base::Nanoseconds now);
    void feed_planned(std::uint32_t peer, base::Nanoseconds now);
    void feed_link(Link& link, base::Nanoseconds now);
    void feed_gets(Link& link, base::Nanoseconds now);

    std::uint64_t largest_;
    PeerTable& peers_;
    LinkTable& links_;
    BulkPlan& plan_;
    Ledger& ledger_;
    const Regions& regions_;
    FramePool& pool_;
    Upper& upper_;
    FeederHost& host_;
    std::vector<std::uint32_t> with_bulk_;  // peers that the layer above has bulk for
    bool offered_ = false;                  // for some of them, or room, since links were given pieces last
    std::uint32_t next_ = 0;                // whose turn it is among those
};

}  // namespace railmux::rails

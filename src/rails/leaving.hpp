// Leaving: how this process leaves. It says goodbye to every peer, and when they have heard that its sessions end, and their
// links. Who has a link that comes up meanwhile is told over that one, or would take its end for a loss, and look for us again.
//
//   say_goodbye -> polls, until it was heard -> part -> polls, until parted -> close
//
// Peers that leave are the rail manager's business (ending.cpp).
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; refers to its rails, peers and links.
#pragma once

#include <cstdint>
#include <vector>

#include <railmux/error.hpp>

#include "base/clock.hpp"
#include "rails/frame_pool.hpp"
#include "rails/link.hpp"
#include "rails/link_host.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"

namespace railmux::rails {

/// What leaving asks of the rail manager, besides what all do who look after links.
class LeavingHost : public LinkHost {
public:
    /// From now on nobody new gets in, and no link is measured any more.
    virtual void let_nobody_in() = 0;
    /// The frame goes to the peer, in its turn, with the next flush.
    virtual void send(std::uint32_t peer, Frame* frame, base::Nanoseconds now) = 0;
    /// It goes over this very link, and not later than the rail makes it.
    virtual void post_now(Link& link, Frame* frame) = 0;
    /// Takes what a look at the rail brings. False: nothing.
    [[nodiscard]] virtual bool look_at(std::uint32_t rail) = 0;
    /// The session with the peer is over, and so are its links; the next one has that epoch.
    virtual void end_session(std::uint32_t peer, std::uint8_t next_epoch, ErrorCode code) = 0;

protected:
    ~LeavingHost() = default;
};

class Leaving {
public:
    Leaving(const RailSet& rails, PeerTable& peers, LinkTable& links, FramePool& pool, LeavingHost& host)
        : rails_(rails), peers_(peers), links_(links), pool_(pool), host_(host) {}

    // --- In this order -----------------------------------------------------------------------------------------------

    /// Says goodbye to every peer, with the next flush; nobody new gets in.
    void say_goodbye(base::Nanoseconds now);
    /// Ends all sessions, as cancelled. Links and what they carry end with the polls that follow, and so does a session that
    /// began after our goodbye.
    void part();
    /// Whether there are no links any more.
    [[nodiscard]] bool parted() noexcept;
    /// Ends all links. Afterwards only destruction is allowed.
    void close(base::Nanoseconds now);

    // --- For the rail manager ----------------------------------------------------------------------------------------

    [[nodiscard]] bool said_goodbye() const noexcept { return said_goodbye_; }
    /// A link is live: its peer may not have heard our goodbye.
    void link_up(const Link& link);
    /// The rail no longer needs a frame that closes this link.
    void closing_gone(const Link& link);
    /// Whether there are links whose peers may not: then close_late() is wanted, behind the looks of a poll.
    [[nodiscard]] bool any_late() const noexcept { return !late_links_.empty(); }
    void close_late(base::Nanoseconds now);

private:
    [[nodiscard]] Frame* closing_frame();
    void drain();
    void await_ends();

    const RailSet& rails_;
    PeerTable& peers_;
    LinkTable& links_;
    FramePool& pool_;
    LeavingHost& host_;
    // Live only since we said goodbye: to be told that they end, or told so and to be ended.
    std::vector<std::uint32_t> late_links_;
    bool said_goodbye_ = false;
};

}  // namespace railmux::rails

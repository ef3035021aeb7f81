// Outboxes: the way of a frame from its link to the rail, and until nobody needs it any more. What a rail does not take at once
// waits in the outbox of its link, in order; what it has taken is its own until it says so.
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; refers to rails, peers and links, and to the ledger.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/in_line.hpp"
#include "rails/frame_pool.hpp"
#include "rails/keeping_up.hpp"
#include "rails/ledger.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"
#include "transports/transport.hpp"

namespace railmux::rails {

/// What the outboxes ask of the rail manager.
class OutboxesHost {
public:
    /// Something goes over a link that nobody looks at now.
    virtual void unsettle(Link& link, base::Nanoseconds now) = 0;
    /// Its rail no longer needs this frame, which is none of the layer above.
    virtual void control_gone(Link& link, const Frame& frame) = 0;
    /// Nobody needs this frame any more, of which the layer above wants to know (it has a token).
    virtual void released(std::uint32_t peer, const Frame& frame) = 0;

protected:
    ~OutboxesHost() = default;
};

class Outboxes {
public:
    Outboxes(base::Clock clock, const RailSet& rails, PeerTable& peers, LinkTable& links, Ledger& ledger,
             const KeepingUp& keeping_up, FramePool& pool, OutboxesHost& host)
        : clock_(clock),
          rails_(rails),
          peers_(peers),
          links_(links),
          ledger_(ledger),
          keeping_up_(keeping_up),
          pool_(pool),
          host_(host) {}

    // --- To the rail -------------------------------------------------------------------------------------------------

    /// A small frame, stamped just now, without bulk, for a rail that copies it, over a link that nothing waits for: it needs
    /// no queue, and to wait for others would gain nothing. False: it is to be lined up.
    [[nodiscard]] inline bool post_at_once(Link& link, Conversation& talk, Frame& frame, base::Nanoseconds now);
    /// Puts the frame into the link's outbox, behind what waits there. What it costs others is the caller's business.
    void line_up(Link& link, Frame* frame, base::Nanoseconds now);
    /// The same, and charges it; the link's candidate is fresh.
    void enqueue(Link& link, Frame* frame, base::Nanoseconds now);
    /// ... and posts it, if the rail takes it.
    void post_now(Link& link, Frame* frame, base::Nanoseconds now);
    /// Something is in the outbox of a link that is live since.
    void mark(Link& link);
    /// Offers rails what waits for them; what they refuse is offered again the next time.
    void post_all(base::Nanoseconds now);
    /// Whether anything waits.
    [[nodiscard]] bool any() const noexcept { return !dirty_.empty(); }
    /// Whether something has left by a call of its own, where a call costs (RailTraits::chains), since this was asked last.
    [[nodiscard]] bool take_called() noexcept { return std::exchange(called_, false); }

    // --- What becomes of it ------------------------------------------------------------------------------------------

    /// The rail no longer needs the frame, of which it had all.
    void gone(Link& link, Frame& frame);
    /// Gives it back if nobody needs it any more: neither the session, nor a rail, nor an outbox.
    void release_if_free(std::uint32_t peer, Frame& frame);
    /// An acknowledgement that waits makes way: the next one tells all that it does. Else what comes in faster than
    /// acknowledgements go out would fill the outbox, and what is sent have to wait behind them.
    void drop_waiting_ack(Link& link);
    /// The link is over. What was to be got is handed to `end_get`.
    template <typename EndGet>
    void clear(Link& link, EndGet&& end_get);

private:
    /// What is offered at a time: so many works, of which the first that carries an acknowledgement has that place.
    struct Offer {
        std::size_t count = 0;
        std::size_t told = batch;
    };
    [[nodiscard]] bool post(Link& link, base::Nanoseconds now);  // false: the rail refused some
    [[nodiscard]] Offer next_offer(Link& link, const Stamp& stamp, bool slow, base::Nanoseconds now);
    void line_up_send(const Link& link, Frame& frame, bool slow, std::size_t place);
    [[nodiscard]] std::size_t hand_over(Link& link, std::size_t count);
    void account(Link& link, std::size_t taken);
    void drop_put(Link& link, Frame& frame, base::Nanoseconds now);

    // Enough for a burst of small messages in one system call.
    static constexpr std::size_t batch = 64;

    base::Clock clock_;
    const RailSet& rails_;
    PeerTable& peers_;
    LinkTable& links_;
    Ledger& ledger_;
    const KeepingUp& keeping_up_;
    FramePool& pool_;
    OutboxesHost& host_;
    std::vector<std::uint32_t> dirty_;  // links with something to post
    bool called_ = false;
    std::array<transports::Work, batch> works_;
    std::array<transports::Segment, batch> segments_;  // of those that send a frame
};

RAILMUX_IN_LINE bool Outboxes::post_at_once(Link& link, Conversation& talk, Frame& frame, base::Nanoseconds now) {
    if (frame.bytes > link.at_once_max || !link.outbox.empty()) [[unlikely]]
        return false;
    if (link.chains && !frame.unaccompanied) return false;
    if (link.refused || link.over) [[unlikely]]
        return false;
    if (link.silence.settled()) [[unlikely]]
        host_.unsettle(link, now);
    if (!link.over_rail->send_short(link.id, {frame.data(), frame.bytes}, link.chains && ledger_.slow(link.rail)))
        [[unlikely]]
        return false;
    called_ = called_ || link.chains;
    talk.owed.told();
    frame.link = link.slot;
    frame.rail = static_cast<std::uint8_t>(link.rail);
    frame.posted = 1;
    frame.sent = now;
    ++link.traffic->sent_frames;
    link.traffic->sent_bytes += frame.payload;
    return true;
}

template <typename EndGet>
void Outboxes::clear(Link& link, EndGet&& end_get) {
    while (!link.outbox.empty()) {
        Frame* frame = link.outbox.pop();
        frame->queued = false;
        frame->posted = 0;
        if (frame->gets) {
            end_get(*frame);
        } else {
            release_if_free(link.peer, *frame);
        }
    }
    link.queued_bytes = link.queued_answers = 0;
    link.bulk = 0;
}

}  // namespace railmux::rails

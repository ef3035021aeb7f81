// RailManager, the way down: what every small message goes through, in line for its callers. What is rare is in routing.cpp
// and sending.cpp.
//
// Threads and lifetime: as RailManager's.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "base/in_line.hpp"
#include "rails/rail_manager.hpp"

namespace railmux::rails {

RAILMUX_IN_LINE void RailManager::send(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    assert(frame->token == 0 && frame->piece_count == 0);
    keeping_up_.sending();
    if (!talk.leads.takes(frame->bytes, talk.session, now)) [[unlikely]]
        return enter_by_choice(peer, talk, frame, now);
    talk.session.enter(*frame, stamp_of(talk, now));
    Link& link = *talk.leads.light.link;
    if (!post_at_once(link, talk, *frame, now)) [[unlikely]]
        line_up(link, frame, now);
    put_off(link, talk, *frame, now);
}

/// That is known only when a frame goes out.
RAILMUX_IN_LINE Stamp RailManager::stamp_of(const Conversation& talk, base::Nanoseconds now) const noexcept {
    const auto ack = talk.session.ack();
    const auto held = talk.newest == ack ? now - talk.arrived : held_longest;  // else another one came in later
    return {ack, talk.owed.consumed, held, keeping_up_.behind(), talk.spreading.now()};
}

/// A small frame, stamped just now, without bulk, for a rail that copies it, over a link that nothing waits for: it needs no
/// queue, and to wait for others would gain nothing. False: it is to be lined up.
RAILMUX_IN_LINE bool RailManager::post_at_once(Link& link, Conversation& talk, Frame& frame, base::Nanoseconds now) {
    if (frame.bytes > link.at_once_max || !link.outbox.empty()) [[unlikely]]
        return false;
    if (link.chains && !frame.unaccompanied) return false;
    if (link.refused || link.over) [[unlikely]]
        return false;
    if (link.silence.settled()) [[unlikely]]
        unsettle(link, now);
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

/// What it costs others is seen to when it is gone.
RAILMUX_IN_LINE void RailManager::put_off(Link& link, Conversation& talk, Frame& frame, base::Nanoseconds now) {
    if (ledger_.put_off(frame)) [[unlikely]]
        due_ = ledger_.follow(link, talk, frame, now) ? std::min(due_, now + put_off_longest) : 0;
}

}  // namespace railmux::rails

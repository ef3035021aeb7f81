// RailManager, the way down: what every small message goes through, and what is told of it, in line for its callers. What is
// rare is in routing.cpp, outboxes.cpp and catching_up.cpp.
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
    talk.session.enter(*frame, talk.stamp(keeping_up_.behind(), now));
    Link& link = *talk.leads.light.link;
    if (!outboxes_.post_at_once(link, talk, *frame, now)) [[unlikely]]
        outboxes_.line_up(link, frame, now);
    put_off(link, talk, *frame, now);
}

/// What it costs others is seen to when it is gone.
RAILMUX_IN_LINE void RailManager::put_off(Link& link, Conversation& talk, Frame& frame, base::Nanoseconds now) {
    if (ledger_.put_off(frame)) [[unlikely]]
        due_ = ledger_.follow(link, talk, frame, now) ? std::min(due_, now + put_off_longest) : 0;
}

RAILMUX_IN_LINE bool RailManager::flush(base::Nanoseconds now) {
    const bool any = post_lined_up(now);
    if (now >= due_) catch_up_and_post();
    return any;
}

RAILMUX_IN_LINE bool RailManager::post_lined_up(base::Nanoseconds now) {
    now_ = now;
    const bool called = outboxes_.take_called();
    if (!outboxes_.any()) return called;
    outboxes_.post_all(now);
    if (due_ == 0 && ledger_.much_late()) ledger_.charge_late();
    return true;
}

RAILMUX_IN_LINE void RailManager::consumed(std::uint32_t peer, std::uint32_t units, base::Nanoseconds now) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;  // its session is over
    talk->owed.consumed += units;
    owe_ack(peer, *talk, now);
}

RAILMUX_IN_LINE void RailManager::owe_ack(std::uint32_t peer, Conversation& talk, base::Nanoseconds now) {
    if (owed_acks_.note(peer, talk.owed, now)) [[unlikely]]
        schedule(talk.owed.due);
}

}  // namespace railmux::rails

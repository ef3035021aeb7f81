// RailManager, the way down: what every small message goes through, in line for its callers. What is rare is in routing.cpp
// and outboxes.cpp.
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

}  // namespace railmux::rails

// Receiver: messages of this process to itself. No rail carries them: the call that sends one finds the receive for it and
// copies, or keeps a copy for the receive to come: of up to eager.max, and of eager.window in all. Beyond these the send waits
// for its receive, which then copies.
//
// Threads and lifetime: as Receiver's.
#pragma once

#include "messaging/way_in.hpp"

namespace railmux::messaging {

RAILMUX_IN_LINE bool Receiver::deliver_own(Tag tag, ConstBuffer data) {
    Posted* const posted = matcher_.match(own_.peer, tag);
    if (posted == nullptr) [[unlikely]] {
        const auto piece = source_of(data);
        return keep_own(tag, {&piece, 1}, data.size());
    }
    deliver(*posted->operation, {.peer = Peer::from_index(own_.peer), .tag = tag, .message = data.size()}, data);
    return true;
}

}  // namespace railmux::messaging

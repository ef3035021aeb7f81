// RailManager: acknowledging what has come, and telling how much of it the application has taken.
#include <algorithm>
#include <array>

#include "rails/rail_manager.hpp"

namespace railmux::rails {

void RailManager::list_ack(std::uint32_t peer, Conversation& talk, base::Nanoseconds due) {
    if (!std::exchange(talk.ack_listed, true)) ack_list_.push_back(peer);
    talk.ack_due = due;
    schedule(due);
}

void RailManager::run_acks(base::Nanoseconds now) {
    std::erase_if(ack_list_, [&](std::uint32_t peer) {
        auto* talk = peers_[peer].talk.get();
        if (talk == nullptr) return true;
        const bool owing = talk->owed > 0 || talk->consumed_here != talk->reported_here;
        if (owing && talk->ack_due > now) {
            schedule(talk->ack_due);
            return false;
        }
        if (owing) send_ack(*talk, now);
        talk->ack_listed = false;
        return true;
    });
}

/// What has arrived. Nobody acknowledges it, and it may be lost or come twice.
Frame* RailManager::ack_frame(const Conversation& talk) {
    std::array<std::byte, Session::max_sack_bytes> sack;
    const auto sack_bytes = talk.session.write_sack(sack);
    Frame* frame = pool_.take(FrameHeader::size + sack_bytes);
    frame->type = FrameType::ack;
    frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + sack_bytes);
    frame->acked = true;  // it is released when it is done
    // A selective acknowledgement counts from the number in its header, so that number may not be stamped anew.
    write_header(frame->data(), {.type = FrameType::ack, .aux = talk.session.ack()});
    std::copy_n(sack.begin(), sack_bytes, frame->data() + FrameHeader::size);
    return frame;
}

/// Of the links of a peer that has any, the one with least to send.
Link& RailManager::least_busy(const Conversation& talk) noexcept {
    auto least = talk.links.front();
    for (const auto slot : talk.links) {
        if (links_.at(slot).queued_bytes < links_.at(least).queued_bytes) least = slot;
    }
    return links_.at(least);
}

void RailManager::send_ack(Conversation& talk, base::Nanoseconds now) {
    if (talk.links.empty()) return;  // it stays owed until there is a link again
    enqueue(least_busy(talk), ack_frame(talk), now);
    talk.owed = 0;
    talk.reported_here = talk.consumed_here;
}

}  // namespace railmux::rails

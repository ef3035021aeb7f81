// RailManager: ends: those of peers, as we are told, and our own.
#include "rails/way_up.hpp"

namespace railmux::rails {

// --- Of peers --------------------------------------------------------------------------------------------------------

void RailManager::ended(std::uint32_t peer, std::uint64_t instance, ErrorCode how, base::Nanoseconds now) {
    const auto standing = peers_.standing(peer, instance);
    if (standing == PeerTable::Standing::successor) peers_.note_predecessor(peer, instance);  // it came and went unseen
    if (standing != PeerTable::Standing::current) return;
    peers_.learn(peer, instance, {});
    auto& known = peers_[peer];
    const bool waited_for = known.talk != nullptr && known.talk->wanted;
    if (known.left || (known.ended && !waited_for)) return;
    known.ended = true;
    known.orderly = how == ErrorCode::peer_left;
    if (!connected(peer)) end_of_process(peer, now);  // else when its links are down
}

void RailManager::peer_leaves(std::uint32_t peer, base::Nanoseconds now) {
    ended(peer, peers_[peer].instance, ErrorCode::peer_left, now);
}

/// The peer has no link, and there is no process behind it that could have one.
void RailManager::end_of_process(std::uint32_t peer, base::Nanoseconds now) {
    auto& known = peers_[peer];
    if (!known.orderly) {
        talk_to(peer).causes += "its process ended without leaving the job\n";
        fail(peer, ErrorCode::peer_lost, now);
        return;
    }
    known.left = true;
    upper_.on_peer_left(peer);
    if (known.talk == nullptr) {
        upper_.on_peer_gone(peer, ErrorCode::peer_left);
    } else {
        end_session(peer, known.epoch, ErrorCode::peer_left);
    }
}

/// The last link was closed in good order, and no goodbye had come: who closes links leaves. Or it was us.
void RailManager::end_in_order(std::uint32_t peer, base::Nanoseconds now) {
    auto& known = peers_[peer];
    if (known.talk->late) return end_session(peer, known.epoch, ErrorCode::cancelled);
    known.ended = known.orderly = true;
    end_of_process(peer, now);
}

// --- Our own ---------------------------------------------------------------------------------------------------------

void RailManager::say_goodbye(base::Nanoseconds now) {
    assessor_.stop();
    flooder_.end();
    connector_.close();
    said_goodbye_ = true;
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
        if (peers_[peer].left || !connected(peer)) continue;
        Frame* frame = pool_.take(FrameHeader::size);
        frame->type = FrameType::bye;
        frame->flags = frame_flag::ordered | frame_flag::ack_now;
        frame->bytes = FrameHeader::size;
        send(peer, frame, now);
    }
    flush(now);
}

Frame* RailManager::closing_frame() {
    Frame* frame = pool_.take(FrameHeader::size);
    frame->type = FrameType::closing;
    frame->bytes = FrameHeader::size;
    frame->acked = true;  // nobody acknowledges it
    write_header(frame->data(), {.type = FrameType::closing});
    return frame;
}

/// Takes what is still on its way here: a socket that is closed before all of it was read is reset, and the other side would
/// lose what we said last.
void RailManager::drain() {
    constexpr int quiet = 64;
    constexpr int most = 10'000;
    for (int round = 0, empty = 0; round < most && empty < quiet; ++round) {
        std::size_t count = 0;
        for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
            if (rails_[rail].polled) count += poll_rail(upper_, rail, false, now_) != Found::nothing ? 1 : 0;
        }
        empty = count == 0 ? empty + 1 : 0;
    }
}

void RailManager::part(base::Nanoseconds now) {
    drain();
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
        auto& known = peers_[peer];
        if (known.talk == nullptr || known.talk->late) continue;
        for (const auto slot : known.talk->links) {
            Link& link = links_.at(slot);
            enqueue(link, closing_frame(), now);
            static_cast<void>(post_outbox(link));
        }
        end_session(peer, known.epoch, ErrorCode::cancelled);
    }
}

/// Links with peers that we were not connected to when we said goodbye. They were accepted before, or asked for by us: who has
/// one is told that it ends, or would take it for lost, and look for us again. What such a peer has sent meanwhile is read
/// first (drain), and the link ends when what we said is on its way.
void RailManager::close_late(base::Nanoseconds now) {
    const auto slots = std::exchange(late_links_, {});
    drain();
    for (const auto slot : slots) {
        Link& link = links_.at(slot);
        if (link.state != LinkState::live || !peers_[link.peer].talk->late) continue;
        if (!std::exchange(link.leaving, true)) {
            enqueue(link, closing_frame(), now);
            continue;
        }
        rails_[link.rail].rail->disconnect(link.id);
        link_dropped(link, now);
        link.state = LinkState::closing;
    }
}

bool RailManager::parted() noexcept {
    bool any = false;
    links_.for_each([&](const Link&) { any = true; });
    return !any;
}

void RailManager::close() {
    connector_.close();
    drain();
    links_.for_each([&](Link& link) {
        if (link.state == LinkState::closing) return;
        if (link.state == LinkState::live) {
            enqueue(link, closing_frame(), 0);
            static_cast<void>(post_outbox(link));
            detach(link);
        }
        rails_[link.rail].rail->disconnect(link.id);
        link.state = LinkState::closing;
    });
    // Their link_down, and the `done` of everything posted, come with the next polls; nothing goes out any more.
    bool left = true;
    for (int round = 0; left && round < 1000; ++round) {
        for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
            const auto count = rails_[rail].rail->poll(events_);
            for (std::size_t i = 0; i < count; ++i) {
                if (events_[i].kind != transports::EventKind::link_down) continue;
                if (Link* link = links_.find(rail, events_[i].link); link != nullptr) {
                    while (!link->outbox.empty()) link->outbox.pop();
                    links_.remove(*link);
                }
            }
        }
        left = !parted();
    }
}

}  // namespace railmux::rails

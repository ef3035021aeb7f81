#include "rails/leaving.hpp"

#include <array>
#include <span>
#include <utility>

namespace railmux::rails {

void Leaving::say_goodbye(base::Nanoseconds now) {
    host_.let_nobody_in();
    said_goodbye_ = true;
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
        const auto* talk = peers_[peer].talk.get();
        if (peers_[peer].left || talk == nullptr || talk->links.empty()) continue;
        Frame* frame = pool_.take(FrameHeader::size);
        frame->type = FrameType::bye;
        frame->flags = frame_flag::ordered | frame_flag::ack_now;
        frame->bytes = FrameHeader::size;
        host_.send(peer, frame, now);
    }
}

Frame* Leaving::closing_frame() {
    Frame* frame = pool_.take(FrameHeader::size);
    frame->type = FrameType::closing;
    frame->bytes = FrameHeader::size;
    frame->acked = true;  // nobody acknowledges it
    write_header(frame->data(), {.type = FrameType::closing});
    return frame;
}

/// Takes what is still on its way here: a socket that is closed before all of it was read is reset, and the other side would
/// lose what we said last.
void Leaving::drain() {
    constexpr int quiet = 64;
    constexpr int most = 10'000;
    for (int round = 0, empty = 0; round < most && empty < quiet; ++round) {
        std::size_t count = 0;
        for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
            if (rails_[rail].polled && host_.look_at(rail)) ++count;
        }
        empty = count == 0 ? empty + 1 : 0;
    }
}

void Leaving::part() {
    drain();
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
        auto& known = peers_[peer];
        if (known.talk == nullptr || known.talk->late) continue;
        for (const auto slot : known.talk->links) host_.post_now(links_.at(slot), closing_frame());
        host_.end_session(peer, known.epoch, ErrorCode::cancelled);
    }
}

void Leaving::link_up(const Link& link) {
    auto& talk = *peers_[link.peer].talk;
    talk.late = talk.late || (said_goodbye_ && talk.links.size() == 1);
    if (talk.late) late_links_.push_back(link.slot);
}

void Leaving::closing_gone(const Link& link) {
    if (link.state == LinkState::live) late_links_.push_back(link.slot);
}

/// Links with peers that we were not connected to when we said goodbye. They were accepted before, or asked for by us: who has
/// one is told that it ends, or would take it for lost, and look for us again. What such a peer has sent meanwhile is read
/// first (drain), and the link ends when what we said is on its way.
void Leaving::close_late(base::Nanoseconds now) {
    const auto slots = std::exchange(late_links_, {});
    drain();
    for (const auto slot : slots) {
        Link& link = links_.at(slot);
        if (link.state != LinkState::live || !peers_[link.peer].talk->late) continue;
        if (!std::exchange(link.leaving, true)) {
            host_.enqueue(link, closing_frame(), now);
        } else {
            host_.break_off(link, {}, now);
        }
    }
}

bool Leaving::parted() noexcept {
    bool any = false;
    links_.for_each([&](const Link&) { any = true; });
    return !any;
}

void Leaving::close(base::Nanoseconds now) {
    host_.let_nobody_in();
    drain();
    links_.for_each([&](Link& link) {
        if (link.state == LinkState::closing) return;
        if (link.state == LinkState::live) {
            host_.post_now(link, closing_frame());
            link.leaving = true;
            host_.break_off(link, {}, now);
        } else {
            rails_[link.rail].rail->disconnect(link.id);
            link.state = LinkState::closing;
        }
    });
    await_ends();
}

/// Of all links: their link_down, and the `done` of everything posted, come with the next polls; nothing goes out any more.
void Leaving::await_ends() {
    constexpr int most = 1000;
    std::array<transports::Event, 64> events;
    for (int round = 0; round < most && !parted(); ++round) {
        for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
            const auto count = rails_[rail].rail->poll(events);
            for (const auto& event : std::span(events).first(count)) {
                if (event.kind != transports::EventKind::link_down) continue;
                if (Link* link = links_.find(rail, event.link); link != nullptr) {
                    while (!link->outbox.empty()) link->outbox.pop();
                    links_.remove(*link);
                }
            }
        }
    }
}

}  // namespace railmux::rails

// RailManager, the way down: from send() to post().
#include "rails/rail_manager.hpp"

namespace railmux::rails {

using transports::Op;

namespace {

/// What a frame puts on the wire, its put included.
std::uint64_t wire_bytes(const Frame& frame) noexcept {
    return frame.bytes + (frame.piece_count > 0 ? std::uint64_t{frame.payload} : 0);
}

// A link holds two pieces of bulk: one on its way, one to follow without a gap. More would only make what comes after wait,
// and commit bytes to a link that may turn out slow.
constexpr std::uint32_t bulk_per_link = 2;

// Acknowledge at the latest after this many frames: a sixteenth of the window keeps the sender going, and one
// acknowledgement in 256 frames costs next to nothing.
constexpr std::uint32_t frames_per_ack = Session::window / 16;

}  // namespace

void RailManager::send(std::uint32_t peer, Frame* frame, base::Nanoseconds now) {
    auto& talk = talk_to(peer);
    if (talk.session.open() && talk.waiting.empty()) {
        enter(peer, talk, frame, now);
    } else {
        talk.waiting.push(frame);
    }
}

void RailManager::enter(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    talk.session.enter(*frame);
    route(peer, talk, frame, now);
}

void RailManager::route(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    frame->link = no_link;
    if (talk.links.empty()) {
        want(peer, now);  // it goes when a link comes up
        return;
    }
    std::size_t choice = 0;
    if (talk.links.size() > 1) {
        for (std::size_t i = 0; i < talk.links.size(); ++i) {
            talk.candidates[i].queued_bytes = links_.at(talk.links[i]).queued_bytes;
        }
        choice = policy_.choose(talk.candidates, wire_bytes(*frame), now);
    }
    if (frame->piece_count > 0) {  // the choice must be a rail whose key the receiver gave us
        for (std::size_t i = 0; i < talk.links.size(); ++i) {
            if (frame->target->key_for(links_.at(talk.links[choice]).remote_rail) != nullptr) break;
            choice = (choice + 1) % talk.links.size();
        }
        if (frame->target->key_for(links_.at(talk.links[choice]).remote_rail) == nullptr) return;
    }
    enqueue(links_.at(talk.links[choice]), frame, now);
}

void RailManager::enqueue(Link& link, Frame* frame, base::Nanoseconds now) {
    frame->link = link.slot;
    frame->queued = true;
    frame->posted = 0;
    frame->sent = now;
    link.queued_bytes += wire_bytes(*frame);
    if (frame->piece_count > 0) ++link.bulk;
    link.outbox.push(frame);
    mark_dirty(link);
}

void RailManager::mark_dirty(Link& link) {
    if (link.dirty) return;
    link.dirty = true;
    dirty_.push_back(link.slot);
}

void RailManager::offer_bulk(std::uint32_t peer, base::Nanoseconds now) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    for (std::size_t i = 0; i < talk->links.size(); ++i) feed_bulk(links_.at(talk->links[i]), now);
}

void RailManager::feed_bulk(Link& link, base::Nanoseconds now) {
    auto& talk = *peers_[link.peer].talk;
    while (link.bulk < bulk_per_link) {
        if (!talk.session.open_for_messages()) {
            talk.bulk_blocked = true;
            return;
        }
        Frame* frame = upper_.next_bulk(link.peer, link.rail, link.remote_rail);
        if (frame == nullptr) return;
        talk.session.enter(*frame);
        enqueue(link, frame, now);
    }
}

void RailManager::flush() {
    std::erase_if(dirty_, [&](std::uint32_t slot) {
        Link& link = links_.at(slot);
        link.dirty = link.state == LinkState::live && !post_outbox(link);
        return !link.dirty;  // what was refused is offered again after the next poll
    });
}

bool RailManager::post_outbox(Link& link) {
    auto& talk = *peers_[link.peer].talk;
    auto& rail = *rails_[link.rail].rail;
    while (!link.outbox.empty()) {
        std::size_t count = 0;
        const auto most = link.refused ? 2 : batch;  // try the door before lining up a crowd
        for (Frame* frame = link.outbox.front(); frame != nullptr && count + 2 <= most; frame = frame->next) {
            const auto cookie = reinterpret_cast<std::uint64_t>(frame);
            if (frame->posted == 0 && frame->piece_count > 0) {
                works_[count++] = {.op = Op::put,
                                   .link = link.id,
                                   .segments = frame->put(),
                                   .remote = *frame->target->key_for(link.remote_rail),
                                   .offset = frame->put_offset,
                                   .cookie = cookie};
            }
            if (frame->type != FrameType::proof) {
                stamp_header(frame->data(), talk.session.ack(), talk.consumed_here);
            }
            frame->segment = {frame->data(), frame->bytes, 0};
            works_[count++] = {.op = Op::send, .link = link.id, .segments = {&frame->segment, 1}, .cookie = cookie};
        }
        const auto taken = rail.post({works_.data(), count});
        account_posted(link, taken);
        if (taken > 0) {  // every frame carries an acknowledgement
            talk.owed = 0;
            talk.reported_here = talk.consumed_here;
        }
        link.refused = taken < count;
        if (link.refused) return false;
    }
    return true;
}

void RailManager::account_posted(Link& link, std::size_t works) {
    while (works > 0) {
        Frame* frame = link.outbox.front();
        const auto taken = static_cast<std::uint8_t>(
            std::min<std::size_t>(works, static_cast<std::size_t>(frame->works() - frame->posted)));
        frame->posted = static_cast<std::uint8_t>(frame->posted + taken);
        frame->undone = static_cast<std::uint8_t>(frame->undone + taken);
        works -= taken;
        if (frame->posted < frame->works()) continue;
        link.outbox.pop();
        frame->queued = false;
        auto& traffic = peers_[link.peer].traffic[link.rail];
        ++traffic.sent_frames;
        traffic.sent_bytes += frame->payload;
    }
}

void RailManager::on_done(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now) {
    Link* link = links_.find(rail, event.link);
    auto& frame = *reinterpret_cast<Frame*>(event.cookie);  // only what post_outbox posted comes back
    --frame.undone;
    if (link == nullptr) return;
    if (frame.undone > 0 || frame.queued) return;
    link->queued_bytes -= wire_bytes(frame);
    const bool bulk = frame.piece_count > 0;
    if (bulk) --link->bulk;
    release_if_free(link->peer, frame);
    if (bulk && link->state == LinkState::live) feed_bulk(*link, now);
}

void RailManager::release_if_free(std::uint32_t peer, Frame& frame) {
    if (!frame.acked || frame.undone > 0 || frame.queued) return;
    if (frame.token != 0) upper_.on_released(peer, frame);
    pool_.give(&frame);
}

void RailManager::empty_outbox(Link& link) {
    while (!link.outbox.empty()) {
        Frame* frame = link.outbox.pop();
        frame->queued = false;
        frame->posted = 0;
        release_if_free(link.peer, *frame);
    }
    link.queued_bytes = 0;
    link.bulk = 0;
}

void RailManager::reroute(std::uint32_t peer, std::uint32_t lost_slot, base::Nanoseconds now) {
    auto& known = peers_[peer];
    known.talk->session.for_each_unacknowledged([&](Frame& frame) {
        if (frame.link != lost_slot || frame.queued || frame.undone > 0) return;
        route(peer, *known.talk, &frame, now);
        if (lost_slot != no_link && frame.link != no_link) ++known.traffic[links_.at(frame.link).rail].resent_frames;
    });
}

// --- Acknowledging ---------------------------------------------------------------------------------------------------

void RailManager::owe_ack(std::uint32_t peer, Conversation& talk, base::Nanoseconds due) {
    if (talk.owed >= frames_per_ack || talk.consumed_here - talk.reported_here >= options_.credit_report) due = 0;
    if (talk.ack_listed) {
        talk.ack_due = std::min(talk.ack_due, due);
    } else {
        talk.ack_listed = true;
        talk.ack_due = due;
        ack_list_.push_back(peer);
    }
    schedule(talk.ack_due);
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

void RailManager::send_ack(Conversation& talk, base::Nanoseconds now) {
    if (talk.links.empty()) return;  // a new link brings frames, and every frame acknowledges
    std::array<std::byte, Session::max_sack_bytes> sack;
    const auto sack_bytes = talk.session.write_sack(sack);
    Frame* frame = pool_.take(FrameHeader::size + sack_bytes);
    frame->type = FrameType::ack;
    frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + sack_bytes);
    frame->acked = true;  // nobody acknowledges it: it is released when it is done
    // A selective acknowledgement counts from the number in its header, so that number may not be stamped anew.
    write_header(frame->data(), {.type = FrameType::ack, .aux = talk.session.ack()});
    std::copy_n(sack.begin(), sack_bytes, frame->data() + FrameHeader::size);
    auto least = talk.links.front();
    for (const auto slot : talk.links) {
        if (links_.at(slot).queued_bytes < links_.at(least).queued_bytes) least = slot;
    }
    enqueue(links_.at(least), frame, now);
    talk.owed = 0;
    talk.reported_here = talk.consumed_here;
}

void RailManager::consumed(std::uint32_t peer, std::uint32_t units, base::Nanoseconds now) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;  // its session is over
    talk->consumed_here += units;
    owe_ack(peer, *talk, now + options_.ack_delay);
}

std::uint32_t RailManager::consumed_by(std::uint32_t peer) const noexcept {
    const auto* talk = peers_[peer].talk.get();
    return talk == nullptr ? 0 : talk->consumed_there;
}

}  // namespace railmux::rails

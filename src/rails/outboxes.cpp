#include "rails/outboxes.hpp"

#include "rails/seal.hpp"

namespace railmux::rails {

using transports::Op;
using transports::Work;

// --- To the rail -----------------------------------------------------------------------------------------------------

void Outboxes::line_up(Link& link, Frame* frame, base::Nanoseconds now) {
    if (link.silence.settled()) [[unlikely]]
        host_.unsettle(link, now);
    frame->link = link.slot;
    frame->rail = static_cast<std::uint8_t>(link.rail);
    frame->queued = true;
    frame->posted = 0;
    frame->summed = false;
    frame->sent = now;
    if (!frame->gets) {  // those cost the way to the peer next to nothing
        link.queued_bytes += frame->wire_bytes();
        if (is_answer(frame->type, frame->flags)) link.queued_answers += frame->bytes;
        if (frame->piece_count > 0) {
            frame->for_rail(link.rail);
            ++link.bulk;
        }
    }
    link.outbox.push(frame);
    mark(link);
}

void Outboxes::enqueue(Link& link, Frame* frame, base::Nanoseconds now) {
    line_up(link, frame, now);
    if (!frame->acked) ledger_.charge(link, *frame, now);
}

void Outboxes::post_now(Link& link, Frame* frame, base::Nanoseconds now) {
    enqueue(link, frame, now);
    if (!post(link, now)) return;
    std::erase(dirty_, link.slot);
    link.dirty = false;
}

void Outboxes::mark(Link& link) {
    if (link.dirty) return;
    link.dirty = true;
    dirty_.push_back(link.slot);
}

void Outboxes::post_all(base::Nanoseconds now) {
    std::erase_if(dirty_, [&](std::uint32_t slot) {
        Link& link = links_.at(slot);
        link.dirty = link.state == LinkState::live && !post(link, now);
        return !link.dirty;
    });
}

bool Outboxes::post(Link& link, base::Nanoseconds now) {
    auto& talk = *peers_[link.peer].talk;
    if (talk.has_choice()) ledger_.time_gathered(link, now);
    const auto stamp = talk.stamp(keeping_up_.behind(), now);
    const bool slow = ledger_.slow(link.rail);
    while (!link.outbox.empty() && !link.over) {
        const auto offer = next_offer(link, stamp, slow, now);
        const auto taken = hand_over(link, offer.count);
        account(link, taken);
        if (taken > offer.told) talk.owed.told();
        link.refused = taken < offer.count;
        if (link.refused) return false;
    }
    return true;
}

/// The works of what is in front.
Outboxes::Offer Outboxes::next_offer(Link& link, const Stamp& stamp, bool slow, base::Nanoseconds now) {
    Offer offer;
    const auto most = link.refused ? 2 : batch;  // try the door before lining up a crowd
    for (Frame* frame = link.outbox.front(); frame != nullptr && offer.count + 2 <= most; frame = frame->next) {
        if (frame->piece_count > 0 && frame->posted == 0) {
            if (frame->denied) drop_put(link, *frame, now);
            if (frame->piece_count > 0) {
                works_[offer.count++] = {.op = frame->gets ? Op::get : Op::put,
                                         .slow = slow,
                                         .link = link.id,
                                         .segments = frame->put(),
                                         .remote = *frame->target->key_for(link.remote_rail),
                                         .offset = frame->put_offset,
                                         .cookie = reinterpret_cast<std::uint64_t>(frame)};
            }
            if (frame->gets) continue;
        }
        if (frame->type != FrameType::proof) {
            stamp.put_on(frame->data());
            offer.told = std::min(offer.told, offer.count);
        }
        line_up_send(link, *frame, slow, offer.count++);
    }
    return offer;
}

void Outboxes::line_up_send(const Link& link, Frame& frame, bool slow, std::size_t place) {
    auto& segment = segments_[place];
    segment = {frame.data(), frame.bytes, 0};
    if (link.checksum) [[unlikely]] {
        seal(frame);
        segment.size += Seal::size;
    }
    auto& work = works_[place];  // what else it has a send does not look at
    work.op = Op::send;
    work.slow = slow;
    // Whoever is to be told that it is released may not be told from within a post.
    work.quiet = segment.size <= link.quiet_max && frame.piece_count == 0 && frame.token == 0;
    work.link = link.id;
    work.segments = {&segment, 1};
    work.cookie = reinterpret_cast<std::uint64_t>(&frame);
}

/// Of so many works; how many of them the rail has taken.
std::size_t Outboxes::hand_over(Link& link, std::size_t count) {
    if (link.timed_waits) [[unlikely]]
        Ledger::posting(link, clock_());
    auto& rail = rails_[link.rail];
    // What processors move is theirs while they hand it over, whatever others want of them.
    const bool timed = link.bulk > 0 && !rail.traits().by_processors;
    const auto begun = timed ? clock_() : 0;
    const auto taken = rail.rail->post({works_.data(), count});
    if (timed) ledger_.handing(link.rail, clock_() - begun);
    return taken;
}

void Outboxes::drop_put(Link& link, Frame& frame, base::Nanoseconds now) {
    const bool charged = frame.charged;
    ledger_.uncharge(frame, now);
    link.queued_bytes -= frame.wire_bytes();
    --link.bulk;
    frame.drop_put();
    link.queued_bytes += frame.wire_bytes();
    if (charged) ledger_.charge(link, frame, now);
}

/// The rail has taken so many of works_.
void Outboxes::account(Link& link, std::size_t taken) {
    auto& traffic = peers_[link.peer].traffic[link.rail];
    for (const auto& work : std::span(works_).first(taken)) {
        Frame* frame = link.outbox.front();
        ++frame->posted;
        if (!work.quiet) ++frame->undone;
        if (frame->posted < frame->works()) continue;
        link.outbox.pop();
        frame->queued = false;
        link.last_posted = frame->sent;
        if (frame->gets) {
            if (rails_[link.rail].traits().copies_puts) traffic.copied_bytes += frame->unregistered_bytes();
            continue;
        }
        const bool of_application = frame->type >= FrameType::eager;
        ++traffic.sent_frames;
        if (of_application) traffic.sent_bytes += frame->payload;
        if (work.quiet) {
            gone(link, *frame);
        } else if (of_application && (frame->piece_count > 0 || frame->type == FrameType::inlined) &&
                   rails_[link.rail].traits().copies_puts) {
            traffic.copied_bytes += frame->type == FrameType::inlined ? frame->payload : frame->unregistered_bytes();
        }
    }
}

// --- What becomes of it ----------------------------------------------------------------------------------------------

void Outboxes::gone(Link& link, Frame& frame) {
    link.queued_bytes -= frame.wire_bytes();
    if (is_answer(frame.type, frame.flags)) link.queued_answers -= frame.bytes;
    if (frame.type < FrameType::eager) host_.control_gone(link, frame);
    release_if_free(link.peer, frame);
}

void Outboxes::release_if_free(std::uint32_t peer, Frame& frame) {
    if (!frame.acked || frame.undone > 0 || frame.queued) return;
    if (frame.token != 0) host_.released(peer, frame);
    pool_.give(&frame);
}

void Outboxes::drop_waiting_ack(Link& link) {
    Frame* const stale = link.outbox.take(
        [](const Frame& frame) { return frame.type == FrameType::ack && frame.flags == 0 && frame.posted == 0; });
    if (stale == nullptr) return;
    link.queued_bytes -= stale->wire_bytes();
    stale->queued = false;
    release_if_free(link.peer, *stale);
}

}  // namespace railmux::rails

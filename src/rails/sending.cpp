// RailManager, the way down: from a link's outbox to post(), where way_down.hpp does not see to it.
#include "rails/rail_manager.hpp"

#include <algorithm>
#include <utility>

#include "rails/seal.hpp"
#include "rails/way_down.hpp"

namespace railmux::rails {

using transports::Op;
using transports::Work;

void RailManager::offer_bulk(std::uint32_t peer) {
    if (peers_[peer].talk == nullptr) return;
    feeder_.offer(peer);
    heard_.await();
    due_ = 0;
}

void RailManager::note_got(std::uint32_t peer, std::uint32_t rail, std::uint64_t bytes) noexcept {
    peers_[peer].traffic[rail].sent_bytes += bytes;
}

/// Does what was put off: first what was sent is charged, then what was acknowledged is taken off. True if there was something.
bool RailManager::catch_up() {
    due_ = never;
    if (!heard_.any() && !ledger_.any_late() && !feeder_.offered()) return false;
    ledger_.charge_late();
    const bool taken = take_heard();
    if (!feeder_.offered()) return taken;
    feeder_.feed_all(now_);
    schedule(plan_.look_again());
    return true;
}

/// Charges the frame and puts it into the link's outbox; the link's candidate is fresh.
void RailManager::enqueue(Link& link, Frame* frame, base::Nanoseconds now) {
    line_up(link, frame, now);
    if (!frame->acked) ledger_.charge(link, *frame, now);
}

/// Something is sent over a link that nobody looks at now.
void RailManager::unsettle(Link& link, base::Nanoseconds now) { schedule(watcher_.unsettle(link, now)); }

void RailManager::line_up(Link& link, Frame* frame, base::Nanoseconds now) {
    if (link.silence.settled()) [[unlikely]]
        unsettle(link, now);
    frame->link = link.slot;
    frame->rail = static_cast<std::uint8_t>(link.rail);
    frame->queued = true;
    frame->posted = 0;
    frame->summed = false;
    frame->sent = now;
    if (frame->gets) {  // costs the way to the peer next to nothing
        link.outbox.push(frame);
        mark_dirty(link);
        return;
    }
    link.queued_bytes += frame->wire_bytes();
    if (is_answer(frame->type, frame->flags)) link.queued_answers += frame->bytes;
    if (frame->piece_count > 0) {
        frame->for_rail(link.rail);
        ++link.bulk;
    }
    link.outbox.push(frame);
    mark_dirty(link);
}

void RailManager::post_now(Link& link, Frame* frame) {
    enqueue(link, frame, now_);
    if (!post_outbox(link)) return;
    std::erase(dirty_, link.slot);
    link.dirty = false;
}

void RailManager::mark_dirty(Link& link) {
    if (link.dirty) return;
    link.dirty = true;
    dirty_.push_back(link.slot);
}

void RailManager::catch_up_and_post() {
    if (catch_up()) post_dirty();
}

void RailManager::post_dirty() {
    std::erase_if(dirty_, [&](std::uint32_t slot) {
        Link& link = links_.at(slot);
        link.dirty = link.state == LinkState::live && !post_outbox(link);
        return !link.dirty;  // what was refused is offered again after the next poll
    });
}

bool RailManager::post_outbox(Link& link) {
    auto& talk = *peers_[link.peer].talk;
    if (talk.has_choice()) ledger_.time_gathered(link, now_);
    auto& rail = *rails_[link.rail].rail;
    const auto stamp = stamp_of(talk, now_);
    const bool slow = ledger_.slow(link.rail);
    while (!link.outbox.empty() && !link.over) {
        std::size_t count = 0;
        std::size_t told = works_.size();            // the first work that carries an acknowledgement
        const auto most = link.refused ? 2 : batch;  // try the door before lining up a crowd
        for (Frame* frame = link.outbox.front(); frame != nullptr && count + 2 <= most; frame = frame->next) {
            const auto cookie = reinterpret_cast<std::uint64_t>(frame);
            if (frame->piece_count > 0 && frame->posted == 0) {
                if (frame->denied) drop_put(link, *frame);
                if (frame->piece_count > 0) {
                    works_[count++] = {.op = frame->gets ? Op::get : Op::put,
                                       .slow = slow,
                                       .link = link.id,
                                       .segments = frame->put(),
                                       .remote = *frame->target->key_for(link.remote_rail),
                                       .offset = frame->put_offset,
                                       .cookie = cookie};
                }
                if (frame->gets) continue;
            }
            if (frame->type != FrameType::proof) {
                stamp.put_on(frame->data());
                told = std::min(told, count);
            }
            auto& segment = segments_[count];
            segment = {frame->data(), frame->bytes, 0};
            if (link.checksum) [[unlikely]] {
                seal(*frame);
                segment.size += Seal::size;
            }
            auto& work = works_[count++];  // what else it has a send does not look at
            work.op = Op::send;
            work.slow = slow;
            // Whoever is to be told that it is released may not be told from within a post.
            work.quiet = segment.size <= link.quiet_max && frame->piece_count == 0 && frame->token == 0;
            work.link = link.id;
            work.segments = {&segment, 1};
            work.cookie = cookie;
        }
        if (link.timed_waits) [[unlikely]]
            Ledger::posting(link, options_.clock());
        // What processors move is theirs while they hand it over, whatever others want of them.
        const bool timed = link.bulk > 0 && !rails_[link.rail].traits().by_processors;
        const auto begun = timed ? options_.clock() : 0;
        const auto taken = rail.post({works_.data(), count});
        if (timed) ledger_.handing(link.rail, options_.clock() - begun);
        account_posted(link, taken);
        if (taken > told) talk.owed.told();
        link.refused = taken < count;
        if (link.refused) return false;
    }
    return true;
}

void RailManager::drop_put(Link& link, Frame& frame) {
    const bool charged = frame.charged;
    ledger_.uncharge(frame, now_);
    link.queued_bytes -= frame.wire_bytes();
    --link.bulk;
    frame.drop_put();
    link.queued_bytes += frame.wire_bytes();
    if (charged) ledger_.charge(link, frame, now_);
}

/// The rail has taken so many of works_.
void RailManager::account_posted(Link& link, std::size_t taken) {
    auto& traffic = peers_[link.peer].traffic[link.rail];
    for (const auto& work : std::span(works_).first(taken)) {
        Frame* frame = link.outbox.front();
        ++frame->posted;
        if (!work.quiet) ++frame->undone;
        if (frame->posted < frame->works()) continue;
        link.outbox.pop();
        frame->queued = false;
        link.last_posted = frame->sent;
        if (frame->gets) continue;
        const bool of_application = frame->type >= FrameType::eager;
        ++traffic.sent_frames;
        if (of_application) traffic.sent_bytes += frame->payload;
        if (work.quiet) {
            sent_off(link, *frame);
        } else if (of_application && (frame->piece_count > 0 || frame->type == FrameType::inlined) &&
                   rails_[link.rail].traits().copies_puts) {
            traffic.copied_bytes += frame->type == FrameType::inlined ? frame->payload : frame->unregistered_bytes();
        }
    }
}

void RailManager::on_done(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now) {
    Link* link = links_.find(rail, event.link);
    auto& frame = *reinterpret_cast<Frame*>(event.cookie);  // NOLINT: a cookie is what post_outbox made of a frame
    --frame.undone;
    if (link == nullptr) return;
    if (frame.gets) return feeder_.end_get(*link, frame, event.status, now_);
    if (event.status == transports::WorkStatus::access_denied) deny_puts(link->peer, frame);
    if (frame.undone > 0 || frame.queued) return;
    const bool bulk = frame.piece_count > 0;
    if (bulk) --link->bulk;
    sent_off(*link, frame);
    if (bulk && link->state == LinkState::live) feeder_.piece_gone(*link, now);
}

/// The rail no longer needs the frame.
void RailManager::sent_off(Link& link, Frame& frame) {
    link.queued_bytes -= frame.wire_bytes();
    if (is_answer(frame.type, frame.flags)) link.queued_answers -= frame.bytes;
    if (frame.type < FrameType::eager && frame.piece_count > 0) Assessor::put_done(link);
    if (frame.type == FrameType::closing) leaving_.closing_gone(link);
    release_if_free(link.peer, frame);
}

/// The rail says that the peer no longer allows this put. Neither it nor others of its transfer are tried again: on fabrics
/// where such a put ends its link each would cost another one.
void RailManager::deny_puts(std::uint32_t peer, Frame& frame) {
    const auto token = frame.token;
    if (frame.piece_count == 0 || frame.acked) return;
    const auto deny = [&](Frame& other) { other.denied = other.denied || other.token == token; };
    if (auto* talk = peers_[peer].talk.get(); talk != nullptr) talk->session.for_each_unacknowledged(deny);
    upper_.on_put_denied(token);
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
        if (frame->gets) {
            feeder_.end_get(link, *frame, transports::WorkStatus::link_lost, now_);
        } else {
            release_if_free(link.peer, *frame);
        }
    }
    link.queued_bytes = link.queued_answers = 0;
    link.bulk = 0;
}

}  // namespace railmux::rails

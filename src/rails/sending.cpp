// RailManager, the way down: from send() to post().
#include "rails/rail_manager.hpp"

#include <cassert>
#include <limits>
#include <utility>

#include "rails/seal.hpp"

namespace railmux::rails {

using transports::Op;

namespace {

// Acknowledge at the latest after this many frames: a sixteenth of the window keeps the sender going, and one
// acknowledgement in 256 frames costs next to nothing.
constexpr std::uint32_t frames_per_ack = Session::window / 16;

// Without acknowledgements for so long there was no traffic.
constexpr base::Nanoseconds pause = 10 * base::millisecond;

/// At most 4 s, and never 0, which means that nothing was predicted.
std::uint32_t narrowed_ns(sched::Ticks ticks) noexcept {
    constexpr sched::Ticks most = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::clamp<sched::Ticks>(ticks / sched::ticks_per_ns, 1, most));
}

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
    // What there is to choose from is to be known, and what the peer acknowledges to have been numbered, before this frame is.
    if (talk.links.size() > 1 || frame->piece_count > 0) static_cast<void>(catch_up());
    talk.session.enter(*frame);
    route(peer, talk, frame, now);
}

void RailManager::route(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    frame->link = no_link;
    if (talk.links.empty()) {
        want(peer, now);  // it goes when a link comes up
        return;
    }
    if (talk.links.size() == 1 && frame->piece_count == 0) {
        line_up(links_.at(talk.links.front()), frame, now);
        if (!frame->acked)
            late_.push_back(frame);  // nothing to choose: what it costs others is seen to when it is gone
        return;
    }
    refresh(talk, now);
    std::size_t choice = policy_.choose(talk.candidates, frame->wire_bytes(), now);
    if (frame->piece_count > 0) {  // the choice must be a rail whose key the receiver gave us
        for (std::size_t i = 0; i < talk.links.size(); ++i) {
            if (frame->target->key_for(links_.at(talk.links[choice]).remote_rail) != nullptr) break;
            choice = (choice + 1) % talk.links.size();
        }
        if (frame->target->key_for(links_.at(talk.links[choice]).remote_rail) == nullptr) return;
    }
    enqueue(links_.at(talk.links[choice]), frame, now);
}

/// Charges the frame and puts it into the link's outbox; the link's candidate is fresh.
void RailManager::enqueue(Link& link, Frame* frame, base::Nanoseconds now) {
    line_up(link, frame, now);
    if (!frame->acked) charge(link, *frame, now);
}

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
    if (frame->type == FrameType::probe_reply) link.queued_answers += frame->bytes;
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

/// Notes what is handed to a link and will be acknowledged.
void RailManager::charge(Link& link, Frame& frame, base::Nanoseconds now) {
    const auto bytes = frame.wire_bytes();
    frame.charged = true;
    const bool ours = node_.others(link.rail).backlog <= small_bytes;
    frame.alone = ours && link.unacked_bytes == 0;
    paces_[link.rail].sent(bytes, now, ours);
    node_.sent(link.rail, bytes, now);
    link.unacked_bytes += bytes;
    if (link.state != LinkState::live) return;  // it goes elsewhere soon
    if ((frame.seq & noted_mask_) == 0) [[unlikely]]
        return charge_noted(link, frame, now);
    policy_.charge(peers_[link.peer].talk->candidates[link.place], bytes, now);
}

/// Also notes what is expected, for the report and the trace: before the policy is told.
void RailManager::charge_noted(const Link& link, Frame& frame, base::Nanoseconds now) {
    const auto& talk = *peers_[link.peer].talk;
    const auto& candidate = talk.candidates[link.place];
    const auto bytes = frame.wire_bytes();
    if (tracer_ != nullptr) tracer_->decided(link, frame, talk, now);
    if (frame.seq % frames_per_prediction == 0) frame.predicted = narrowed_ns(policy_.delivery(candidate, bytes, now));
    policy_.charge(candidate, bytes, now);
}

void RailManager::charge_late() {
    for (Frame* frame : late_) {
        Link& link = links_.at(frame->link);
        if (link.state == LinkState::live) refresh(*peers_[link.peer].talk, frame->sent);
        charge(link, *frame, frame->sent);
    }
    late_.clear();
}

/// Does what was put off. True if there was something.
bool RailManager::catch_up() {
    if (heard_.empty() && late_.empty()) return false;
    const bool any = take_heard();
    charge_late();
    return any;
}

/// What was handed to a link will not be acknowledged over it.
void RailManager::uncharge(Frame& frame) noexcept {
    if (!std::exchange(frame.charged, false)) return;
    Link& link = links_.at(frame.link);
    assert(link.unacked_bytes >= frame.wire_bytes());
    link.unacked_bytes -= frame.wire_bytes();
    paces_[link.rail].lost(frame.wire_bytes());
    node_.left(link.rail, paces_[link.rail].backlog(), now_);
}

/// Once for all that came in together, which has been counted as delivered: how it was spread over several
/// acknowledgements says nothing.
void RailManager::settle(base::Nanoseconds now) noexcept {
    if (!std::exchange(released_, false)) return;
    if (now - acked_ < pause) busy_ += now - acked_;
    acked_ = now;
    node_.look(now);
    for (std::uint32_t rail = 0; rail < paces_.size(); ++rail) {
        auto& pace = paces_[rail];
        if (!pace.unsettled()) continue;
        pace.settle(now, busy_, node_.others(rail), now - quiet_);
        node_.left(rail, pace.backlog(), now);
    }
}

/// What the policy is to know of the links now.
void RailManager::refresh(Conversation& talk, base::Nanoseconds now) noexcept {
    node_.look(now);
    sched::Candidate* trusted = nullptr;
    auto least = std::numeric_limits<sched::Ticks>::max();
    for (std::size_t i = 0; i < talk.links.size(); ++i) {
        auto& candidate = talk.candidates[i];
        const auto& pace = paces_[candidate.rail];
        candidate.cost = talk.costs[i];
        candidate.backlog = pace.backlog() + node_.others(candidate.rail).backlog;
        candidate.silent = pace.silent(looked_);
        const Link& link = links_.at(talk.links[i]);
        candidate.recent = talk.follows && link.slot == talk.last_link;
        pace.correct(candidate.cost, now, busy_);
        const auto heard = link.echo.latency(now);
        if (heard > 0) candidate.cost.latency = heard;
        if (heard == 0 && candidate.recent) trusted = &candidate;
        if (const auto arrived = node_.take_arrivals(candidate.rail); arrived > 0)
            policy_.charge(candidate, arrived, now);
        least = std::min(least, candidate.cost.latency);
    }
    // The peer chose this link, and knows what we do not: it is worth trying.
    if (trusted != nullptr) trusted->cost.latency = least;
}

void RailManager::mark_dirty(Link& link) {
    if (link.dirty) return;
    link.dirty = true;
    dirty_.push_back(link.slot);
}

void RailManager::flush(base::Nanoseconds now) {
    now_ = now;
    post_dirty();
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
    auto& rail = *rails_[link.rail].rail;
    while (!link.outbox.empty() && !link.over) {
        std::size_t count = 0;
        std::size_t told = works_.size();            // the first work that carries an acknowledgement
        const auto most = link.refused ? 2 : batch;  // try the door before lining up a crowd
        for (Frame* frame = link.outbox.front(); frame != nullptr && count + 2 <= most; frame = frame->next) {
            const auto cookie = reinterpret_cast<std::uint64_t>(frame);
            if (frame->denied && frame->posted == 0 && frame->piece_count > 0) drop_put(link, *frame);
            if (frame->posted == 0 && frame->piece_count > 0) {
                works_[count++] = {.op = frame->gets ? Op::get : Op::put,
                                   .link = link.id,
                                   .segments = frame->put(),
                                   .remote = *frame->target->key_for(link.remote_rail),
                                   .offset = frame->put_offset,
                                   .cookie = cookie};
            }
            if (frame->gets) continue;
            if (frame->type != FrameType::proof) {
                stamp_header(frame->data(), talk.session.ack(), talk.consumed_here, now_ - talk.arrived);
                told = std::min(told, count);
            }
            frame->segment = {frame->data(), frame->bytes, 0};
            if (link.checksum) [[unlikely]] {
                seal(*frame);
                frame->segment.size += Seal::size;
            }
            works_[count++] = {.op = Op::send, .link = link.id, .segments = {&frame->segment, 1}, .cookie = cookie};
        }
        const auto taken = rail.post({works_.data(), count});
        account_posted(link, taken);
        if (taken > told) {
            talk.owed = 0;
            talk.reported_here = talk.consumed_here;
            talk.ack_due = never;
        }
        link.refused = taken < count;
        if (link.refused) return false;
    }
    return true;
}

void RailManager::drop_put(Link& link, Frame& frame) {
    const bool charged = frame.charged;
    uncharge(frame);
    link.queued_bytes -= frame.wire_bytes();
    --link.bulk;
    drop_put(frame);
    link.queued_bytes += frame.wire_bytes();
    if (charged) charge(link, frame, now_);
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
        if (frame->gets) continue;
        auto& traffic = peers_[link.peer].traffic[link.rail];
        ++traffic.sent_frames;
        traffic.sent_bytes += frame->payload;
        if (frame->piece_count > 0 && rails_[link.rail].traits().copies_puts)
            traffic.copied_bytes += frame->unregistered_bytes();
    }
}

void RailManager::on_done(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now) {
    Link* link = links_.find(rail, event.link);
    auto& frame = *reinterpret_cast<Frame*>(event.cookie);  // NOLINT: a cookie is what post_outbox made of a frame
    --frame.undone;
    if (link == nullptr) return;
    if (frame.gets) return end_get(*link, frame, event.status);
    if (event.status == transports::WorkStatus::access_denied) deny_puts(link->peer, frame);
    if (frame.undone > 0 || frame.queued) return;
    link->queued_bytes -= frame.wire_bytes();
    if (frame.type == FrameType::probe_reply) link->queued_answers -= frame.bytes;
    const bool bulk = frame.piece_count > 0;
    if (bulk) --link->bulk;
    release_if_free(link->peer, frame);
    if (bulk && link->state == LinkState::live) feed_bulk(*link, now);
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

/// Of a frame that is on no link, or in its outbox.
void RailManager::drop_put(Frame& frame) noexcept {
    frame.piece_count = 0;
    frame.payload = 0;
    frame.summed = false;
    frame.flags |= frame_flag::denied;
    stamp_flags(frame.data(), frame.flags);
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
            end_get(link, *frame, transports::WorkStatus::link_lost);
        } else {
            release_if_free(link.peer, *frame);
        }
    }
    link.queued_bytes = link.queued_answers = 0;
    link.bulk = 0;
}

void RailManager::reroute(std::uint32_t peer, std::uint32_t lost_slot, base::Nanoseconds now) {
    auto& known = peers_[peer];
    static_cast<void>(catch_up());
    bool parked = false;
    known.talk->session.for_each_unacknowledged([&](Frame& frame) {
        if (frame.link != lost_slot || frame.queued || frame.undone > 0 || frame.parked) return;
        uncharge(frame);
        if (frame.denied && frame.piece_count > 0) drop_put(frame);
        frame.again = frame.again || lost_slot != no_link;
        frame.predicted = 0;
        if (lost_slot != no_link && park(links_.at(lost_slot), frame)) {
            parked = true;
            return;
        }
        route(peer, *known.talk, &frame, now);
        if (lost_slot != no_link && frame.link != no_link) ++known.traffic[links_.at(frame.link).rail].resent_frames;
    });
    if (parked) ask_to_settle(peer, links_.at(lost_slot).nonce, now);
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

void RailManager::send_ack(Conversation& talk, base::Nanoseconds now) {
    if (talk.links.empty()) return;  // it stays owed until there is a link again
    auto least = talk.links.front();
    for (const auto slot : talk.links) {
        if (links_.at(slot).queued_bytes < links_.at(least).queued_bytes) least = slot;
    }
    enqueue(links_.at(least), ack_frame(talk), now);
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

// RailManager, the way up: what the rails report.
#include "rails/rail_manager.hpp"

namespace railmux::rails {

using transports::EventKind;

bool RailManager::poll(base::Nanoseconds now) {
    // The first rail that has something ends the round: what it brought should reach the application before other rails are
    // looked at, each of which costs a system call. The next round begins behind it, so that every rail gets its turn.
    bool any = false;
    for (std::size_t i = 0; i < rails_.size() && !any; ++i) {
        const auto rail = next_rail_;
        next_rail_ = next_rail_ + 1 < rails_.size() ? next_rail_ + 1 : 0;
        if (rails_[rail].up) any = poll_rail(rail, now);
    }
    if (now >= next_deadline_) {
        next_deadline_ = never;
        run_acks(now);
        schedule(connector_.expire(now));
        connect_waiting(now);
    }
    if (!dirty_.empty()) flush();
    return any;
}

bool RailManager::poll_rail(std::uint32_t rail, base::Nanoseconds now) {
    const auto count = rails_[rail].rail->poll(events_);
    for (std::size_t i = 0; i < count; ++i) handle(rail, events_[i], now);
    return count > 0;
}

void RailManager::handle(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now) {
    switch (event.kind) {
        case EventKind::done: on_done(rail, event, now); return;
        case EventKind::connect_request: connector_.requested(rail, event, now); break;
        case EventKind::rail_down: on_rail_down(rail, event.text); break;
        case EventKind::notified: break;  // puts are closed by frames; nobody asks for notifications
        case EventKind::received:
            if (Link* link = links_.find(rail, event.link); link != nullptr) {
                if (link->state == LinkState::live) {
                    on_received(*link, event, now);
                } else if (link->state != LinkState::closing) {
                    connector_.received(*link, event.data, now);
                }
            }
            return;
        case EventKind::link_up:
            if (Link* link = links_.find(rail, event.link); link != nullptr) connector_.came_up(*link, event.data, now);
            break;
        case EventKind::link_down:
            if (Link* link = links_.find(rail, event.link); link != nullptr) on_link_down(*link, event, now);
            break;
    }
    schedule(connector_.expire(now));
}

void RailManager::on_received(Link& link, const transports::Event& event, base::Nanoseconds now) {
    const auto header = parse_header(event.data);
    if (!header) {
        break_off(link, "it sent a malformed frame", now);
        return;
    }
    const auto body = event.data.subspan(FrameHeader::size);
    if (header->type == FrameType::closing) {
        link.leaving = true;
        return;
    }
    const bool is_ack = header->type == FrameType::ack;
    const auto peer = link.peer;
    if (!take_acks(peer, *header, is_ack ? body : std::span<const std::byte>{}, now)) {
        break_off(link, "it acknowledged what was never sent", now);
    } else if (!is_ack && !take_in(link, *header, body, now)) {
        break_off(link, "it broke the wire protocol", now);
    }
}

bool RailManager::take_acks(std::uint32_t peer, const FrameHeader& header, std::span<const std::byte> sack,
                            base::Nanoseconds now) {
    auto& talk = *peers_[peer].talk;
    if (sack.size() > Session::max_sack_bytes) return false;
    bool moved = false;
    const auto release = [&](Frame& frame) {
        moved = true;
        if (frame.link != no_link) policy_.delivered(links_.at(frame.link).rail, frame.payload, frame.sent, now);
        frame.acked = true;
        release_if_free(peer, frame);
    };
    if (!talk.session.acknowledged(header.ack, {}, release)) return false;
    // The bits of an acknowledgement count from the number it was made with, which may be older than the one stamped on.
    if (!sack.empty() && !talk.session.acknowledged(header.aux, sack, release)) return false;
    if (const auto more = header.consumed - talk.consumed_there; more != 0 && more < ~std::uint32_t{0} / 2) {
        talk.consumed_there = header.consumed;
        moved = true;
    }
    if (!moved) return true;
    while (!talk.waiting.empty() && talk.session.open()) enter(peer, talk, talk.waiting.pop(), now);
    if (talk.bulk_blocked && talk.session.open_for_messages()) {
        talk.bulk_blocked = false;
        offer_bulk(peer, now);
    }
    upper_.on_sendable(peer);
    return true;
}

bool RailManager::take_in(Link& link, const FrameHeader& header, std::span<const std::byte> body,
                          base::Nanoseconds now) {
    const auto peer = link.peer;
    auto& known = peers_[peer];
    auto& talk = *known.talk;
    if (header.type == FrameType::proof) return true;  // once more: it proves nothing new and harms nothing
    const bool ack_now = (header.flags & frame_flag::ack_now) != 0;
    ++talk.owed;
    owe_ack(peer, talk, ack_now ? 0 : now + options_.ack_delay);
    auto& traffic = known.traffic[link.rail];
    switch (talk.session.arrived(header.seq)) {
        case Session::Arrival::impossible: return false;
        case Session::Arrival::duplicate: ++traffic.duplicate_frames; return true;
        case Session::Arrival::fresh: break;
    }
    ++traffic.received_frames;
    traffic.received_bytes += header.aux;
    bool good = true;
    const auto up = [&](const FrameHeader& in, std::span<const std::byte> bytes) {
        if (in.type == FrameType::bye) {
            known.left = true;
            upper_.on_peer_gone(peer, ErrorCode::peer_left);
        } else {
            good = upper_.on_frame(peer, in, bytes) && good;
        }
    };
    const bool ordered = (header.flags & frame_flag::ordered) != 0;
    if (!ordered) {
        up(header, body);
        return good;
    }
    return talk.session.in_order(header, body, up) && good;
}

void RailManager::break_off(Link& link, std::string_view cause, base::Nanoseconds now) {
    log_.warning("rail {}: link {} to {} closed: {}", rails_[link.rail].traits().name, link.label,
                 peers_.name(link.peer), cause);
    rails_[link.rail].rail->disconnect(link.id);
    link_dropped(link, now);
    link.state = LinkState::closing;
}

void RailManager::on_link_down(Link& link, const transports::Event& event, base::Nanoseconds now) {
    const auto peer = link.peer;
    const auto slot = link.slot;
    const auto rail = link.rail;
    if (link.state == LinkState::live) {
        if (!peers_[peer].left && !link.leaving) {
            log_.warning("rail {}: link {} to {} lost: {}", rails_[rail].traits().name, link.label, peers_.name(peer),
                         event.text);
            peers_[peer].talk->causes +=
                fmt::format("rail {} ({}): {}\n", rails_[rail].traits().name, link.label, event.text);
        }
        link_dropped(link, now);
    } else {
        connector_.went_down(link, event, now);
    }
    empty_outbox(link);
    links_.remove(link);
    if (peer == no_peer || peers_[peer].talk == nullptr) return;
    auto& known = peers_[peer];
    if (known.left && known.talk->links.empty()) {
        end_session(peer, known.epoch, ErrorCode::peer_left);
        return;
    }
    // An acknowledgement, or credit, may have died with the link, while what it was for came over another one.
    known.talk->owed = std::max(known.talk->owed, 1U);
    owe_ack(peer, *known.talk, now);
    reroute(peer, slot, now);
    upper_.on_link_lost(peer, rail);
}

void RailManager::on_rail_down(std::uint32_t rail, std::string_view cause) {
    rails_[rail].up = false;
    rails_[rail].info.reason = std::string(cause);
    log_.warning("rail {} down: {}", rails_[rail].traits().name, cause);
}

}  // namespace railmux::rails

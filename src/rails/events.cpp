// RailManager: looking at the rails, and what they report; frames go on in receiving.cpp.
#include "rails/way_up.hpp"

#include <algorithm>
#include <cassert>

namespace railmux::rails {

using transports::EventKind;

namespace {
// Rails that processors move are looked at so often while another of them is used: a look in vain at a socket takes as long as
// half a message through memory.
constexpr base::Nanoseconds spare_rest = 20 * base::microsecond;
}  // namespace

bool RailManager::poll(base::Nanoseconds now) { return poll(upper_, now); }

void RailManager::watched_until(base::Nanoseconds now) noexcept {
    rounds_.woken(now);
    keeping_up_.slept(now);
}

/// What is looked at once in 64 polls, or in 256, would be found after as many milliseconds by who polls each millisecond.
void RailManager::look_everywhere() noexcept {
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
        if (rails_[rail].polled) rails_[rail].rail->look_everywhere();
    }
}

void RailManager::list_rails() {
    watched_of_ = links_.changes();
    rounds_.clear();
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
        if (!rails_[rail].polled || (rails_[rail].inward && !links_.any_of(rail))) continue;
        rounds_.add(rail, may_stand_by(rail) ? spare_rest : 0);
    }
}

/// Whether processors move it, and whoever is reached over it is reached over another rail that they move, too.
bool RailManager::may_stand_by(std::uint32_t rail) {
    bool others = traits(rail).by_processors;
    links_.for_each([&](const Link& link) {
        if (!others || link.rail != rail || link.state != LinkState::live) return;
        others = std::ranges::count(peers_[link.peer].talk->candidates, true, &sched::Candidate::by_processors) > 1;
    });
    return others;
}

bool brings_much(std::span<const transports::Event> events, std::size_t most) noexcept {
    std::size_t bytes = 0;
    for (const auto& event : events) bytes += event.data.size();
    return events.size() == most || bytes >= bytes_of_much;
}

/// Something is due, or may be.
void RailManager::keep_time(base::Nanoseconds now) {
    next_deadline_ = never;
    run_acks(now);
    connect_waiting(now);
    take_new_rails(now);
    recover(now);
    schedule(watcher_.look(now));
    // Of what has just begun, too; an answer that nobody looked for is no silence.
    schedule(connector_.expire(rounds_.looks().looked));
    schedule(assessor_.repeat(now));
    schedule(assessor_.next_step());
    if (plan_.take_due(now) && feeder_.any()) feeder_.feed_all(now);
    schedule(plan_.look_again());
    if (!ledger_.node().take_damage()) return;
    log_.warning(
        "{} was written to by something else than railmux: what processes of this host saw of each other's load "
        "may have been wrong for up to a second",
        node_table_->path());
}

void RailManager::on_change(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now) {
    static_cast<void>(catch_up());  // sessions and links are about to change
    switch (event.kind) {
        case EventKind::connect_request: connector_.requested(rail, event, now); break;
        case EventKind::rail_down: on_rail_down(rail, event.text, now); break;
        case EventKind::rail_up: on_rail_up(rail, now); break;
        case EventKind::devices_changed:
            rails_.look_for_new();
            next_scan_ = std::min(next_scan_, now + scan_delay);
            schedule(next_scan_);
            break;
        case EventKind::link_up:
            if (Link* link = links_.find(rail, event.link); link != nullptr) connector_.came_up(*link, event.data, now);
            break;
        case EventKind::link_down:
            if (Link* link = links_.find(rail, event.link); link != nullptr) on_link_down(*link, event, now);
            break;
        default: break;  // notified: puts are closed by frames; nobody asks for notifications
    }
    schedule(connector_.expire(rounds_.looks().looked));
}

void RailManager::break_off(Link& link, std::string_view cause, base::Nanoseconds now) {
    static_cast<void>(catch_up());              // what it has acknowledged is not said again: later it is no news
    if (link.state != LinkState::live) return;  // what one frame brings may be wrong in two ways
    if (!peers_[link.peer].left && !link.leaving) lose(link, cause, now);
    rails_[link.rail].rail->disconnect(link.id);
    link_dropped(link, now);
    link.state = LinkState::closing;
}

void RailManager::on_link_down(Link& link, const transports::Event& event, base::Nanoseconds now) {
    const auto peer = link.peer;
    const auto slot = link.slot;
    const auto rail = link.rail;
    const auto nonce = link.nonce;
    const bool was_live = link.was_live;
    // Who has acknowledged our goodbye may end links as he likes, whatever is still on its way over them.
    if (leaving_.said_goodbye() && link.state == LinkState::live && idle(peer)) link.leaving = true;
    const bool in_order = link.leaving;
    if (link.state == LinkState::live) {
        if (!peers_[peer].left && !link.leaving) lose(link, event.text, now);
        link_dropped(link, now);
    } else {
        connector_.went_down(link, event, now);
    }
    outboxes_.clear(link, [&](Frame& get) { feeder_.end_get(link, get, transports::WorkStatus::link_lost, now); });
    links_.remove(link);
    if (peer == no_peer || peers_[peer].talk == nullptr) return;
    settling_.link_over(peer, nonce, now);
    auto& known = peers_[peer];
    if (known.left && known.talk->links.empty()) {
        end_session(peer, known.epoch, ErrorCode::peer_left);
        return;
    }
    if (in_order && known.talk->links.empty()) return end_in_order(peer, now);
    if (!was_live) return;  // nothing went over it, and whoever asked for it may be anybody
    // An acknowledgement, or credit, may have died with the link, while what it was for came over another one.
    known.talk->owed.frames = std::max(known.talk->owed.frames, 1U);
    hurry_ack(peer, *known.talk);
    reroute(peer, slot, now);
    assert(links_.at(slot).underway.unacknowledged() == 0);  // or its rail would seem busy for ever
    assert(balanced());
    upper_.on_link_lost(peer, rail);
}

void RailManager::on_done(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now) {
    Link* link = links_.find(rail, event.link);
    auto& frame = *reinterpret_cast<Frame*>(event.cookie);  // NOLINT: a cookie is what the outbox made of a frame
    --frame.undone;
    if (link == nullptr) return;
    if (frame.gets) return feeder_.end_get(*link, frame, event.status, now_);
    if (event.status == transports::WorkStatus::access_denied) deny_puts(link->peer, frame);
    if (frame.undone > 0 || frame.queued) return;
    const bool bulk = frame.piece_count > 0;
    if (bulk) --link->bulk;
    outboxes_.gone(*link, frame);
    if (bulk && link->state == LinkState::live) feeder_.piece_gone(*link, now);
}

void RailManager::control_gone(Link& link, const Frame& frame) {
    if (frame.piece_count > 0) Assessor::put_done(link);
    if (frame.type == FrameType::closing) leaving_.closing_gone(link);
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

}  // namespace railmux::rails

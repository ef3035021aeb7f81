// RailManager, the way up: what the rails report.
#include "rails/rail_manager.hpp"

#include <algorithm>
#include <cassert>

namespace railmux::rails {

using transports::EventKind;

namespace {
// What came in while nobody took the time may have been there for a while, or have woken us: it says nothing of the network.
constexpr base::Nanoseconds not_timed = base::millisecond;
// Of rails that both sides are busy sending over, acknowledgements come with other data, and may have waited behind that, over
// whatever rail: who is late would not be known. So what comes over each is acknowledged by itself as often as that.
constexpr base::Nanoseconds apart_time = base::millisecond;
// What is made gets its addresses within moments, each of which is told.
constexpr base::Nanoseconds scan_delay = 50 * base::millisecond;
}  // namespace

bool RailManager::poll(base::Nanoseconds now) {
    now_ = now;
    bool any = now >= due_ && catch_up();
    if (assessor_.working()) [[unlikely]] {
        any = assessor_.step(now) || any;
        schedule(std::min(assessor_.next_step(), assessor_.repeat(now)));
    }
    const bool found = look_round(assessor_.timing(now), now);
    keeping_up_.looked(found, now);
    if (heard_awaited_) [[unlikely]]
        static_cast<void>(catch_up());
    if (now >= next_deadline_) [[unlikely]] {
        keep_time(now);
        any = true;  // operations may have failed: whoever is about to sleep must look again
    }
    if (!late_links_.empty()) [[unlikely]] {
        close_late(now);
        any = true;
    }
    if (!dirty_.empty()) flush(now);
    return any || found;
}

/// The first rail that has something ends the round: what it brought should reach the application before other rails are
/// looked at, each of which costs a system call. The next round begins behind it, so that every rail gets its turn.
bool RailManager::look_round(bool exact, base::Nanoseconds now) {
    if (watched_of_ != links_.changes()) [[unlikely]]
        list_rails();
    const auto rails = watched_.size();
    if (exact) [[unlikely]] {  // what is timed there should not wait for the others
        const auto timed = std::ranges::find(watched_, assessor_.timed_rail());
        if (timed != watched_.end()) next_rail_ = static_cast<std::size_t>(timed - watched_.begin());
    }
    for (auto left = rails; left > 0; --left) {
        const auto place = next_rail_;
        next_rail_ = place + 1 < rails ? place + 1 : 0;
        if (place == 0) looks_.begun = now;
        const auto rail = watched_[place];
        const bool found = assessor_.may_look(rail, now) && poll_rail(rail, exact, now);
        if (next_rail_ == 0) looks_.looked = looks_.begun;
        if (found) return true;
    }
    if (rails == 0) looks_.looked = now;
    looks_.quiet = now;
    return false;
}

void RailManager::list_rails() {
    watched_of_ = links_.changes();
    watched_.clear();
    next_rail_ = 0;
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
        if (rails_[rail].polled && (!rails_[rail].inward || links_.any_of(rail))) watched_.push_back(rail);
    }
}

/// Something is due, or may be.
void RailManager::keep_time(base::Nanoseconds now) {
    next_deadline_ = never;
    run_acks(now);
    connect_waiting(now);
    take_new_rails(now);
    recover(now);
    watch_links(now);
    // Of what has just begun, too; an answer that nobody looked for is no silence.
    schedule(connector_.expire(looks_.looked));
    schedule(assessor_.repeat(now));
    schedule(assessor_.next_step());
    if (ledger_.node().take_damage()) report_damage();
}

bool RailManager::poll_rail(std::uint32_t rail, bool exact, base::Nanoseconds now) {
    const auto begun = exact ? options_.clock() : now;
    const auto blind = exact ? watch_.looks(begun) : not_timed;
    const auto count = rails_[rail].rail->poll(events_);
    if (count == 0) return false;
    // A wait does not read the clock for each look; what comes in at last is to be timed all the same, and time limits
    // must not begin in the past.
    const bool news = take_note(rail, {events_.data(), count});
    const auto ended = exact || news ? options_.clock() : now;
    if (news) now = now_ = ended;
    look_ = {.begun = begun, .at = ended, .blind = blind};
    if (exact) look_.receive_cpu = (ended - begun) / static_cast<base::Nanoseconds>(count);
    for (std::size_t i = 0; i < count; ++i) handle(rail, events_[i], now);
    ledger_.settle(now, now - looks_.quiet);
    return true;
}

/// Before the first of these is handled: whether there is more than ends of what was posted. What would be posted now to a link
/// whose end is among them would be done after that end.
bool RailManager::take_note(std::uint32_t rail, std::span<const transports::Event> events) noexcept {
    bool news = false;
    for (const auto& event : events) {
        if (event.kind == EventKind::done) continue;
        news = true;
        if (event.kind != EventKind::link_down) continue;
        if (Link* link = links_.find(rail, event.link); link != nullptr) link->over = true;
    }
    return news;
}

void RailManager::handle(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now) {
    if (event.kind == EventKind::done) return on_done(rail, event, now);
    if (event.kind == EventKind::received) {
        Link* const link = links_.find(rail, event.link);
        if (link == nullptr) return;
        if (link->state == LinkState::live) [[likely]]
            return on_received(*link, event, now);
        if (link->state == LinkState::closing) return;
        static_cast<void>(catch_up());  // as below
        return connector_.received(*link, event.data, now);
    }
    static_cast<void>(catch_up());  // sessions and links are about to change
    switch (event.kind) {
        case EventKind::connect_request: connector_.requested(rail, event, now); break;
        case EventKind::rail_down: on_rail_down(rail, event.text, now); break;
        case EventKind::rail_up: on_rail_up(rail, now); break;
        case EventKind::devices_changed:
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
    schedule(connector_.expire(looks_.looked));
}

void RailManager::on_received(Link& link, const transports::Event& event, base::Nanoseconds now) {
    link.said_at = now;
    auto bytes = event.data;
    if (link.checksum) [[unlikely]] {
        const auto frame = opened(link, bytes, now);
        if (!frame) return;
        bytes = *frame;
    }
    const auto header = parse_header(bytes);
    if (!header) {
        break_off(link, "it sent a malformed frame", now);
        return;
    }
    const auto body = bytes.subspan(FrameHeader::size);
    auto& known = peers_[link.peer];
    // What comes after our goodbye is for nobody. A session that is over here may go on there, and its numbers make no sense.
    if (said_goodbye_ && header->type != FrameType::closing && known.talk->late) [[unlikely]]
        return;
    if (header->type < FrameType::eager) return on_control(link, *header, body, now);
    if (!hear_ack(link, *known.talk, *header, now)) return;
    if (!take_in(link, known, *header, body, now)) break_off(link, "it broke the wire protocol", now);
}

/// Frames of the rail manager's own.
void RailManager::on_control(Link& link, const FrameHeader& header, std::span<const std::byte> body,
                             base::Nanoseconds now) {
    auto& known = peers_[link.peer];
    auto& talk = *known.talk;
    if (header.type == FrameType::closing) {
        if (!talk.late && !hear_ack(link, talk, header, now)) return;
        link.leaving = true;
        return;
    }
    if (header.type == FrameType::lost || header.type == FrameType::settle) {
        if (!hear_ack(link, talk, header, now)) return;  // whoever sent it need not tell once more
        const bool good =
            header.type == FrameType::lost ? lost_there(link.peer, body, now) : on_settle(link, body, now);
        if (!good) break_off(link, "it sent a malformed frame", now);
        return;
    }
    if (header.type == FrameType::ack || header.type == FrameType::settled) {
        static_cast<void>(catch_up());  // in the order in which they came
        if (link.state != LinkState::live) return;
        if (header.type == FrameType::settled) {
            if (!on_settled(link, header, body, now)) break_off(link, "it sent a malformed frame", now);
            return;
        }
        if (talk.session.hear(header.ack) == Session::Hearing::news) ledger_.heard(link, talk, header, now);
        const bool credit = take_credit(talk, header);
        if (!take_acks(link, header, body, credit, now)) break_off(link, "it acknowledged what was never sent", now);
        return;
    }
    if (!hear_ack(link, talk, header, now)) return;
    if (header.type == FrameType::probe || header.type == FrameType::probe_reply || header.type == FrameType::model ||
        header.type == FrameType::probe_memory) {
        if (!assess(link, header.type, body)) break_off(link, "it sent a malformed probe", now);
    } else if (!take_in(link, known, header, body, now)) {
        break_off(link, "it broke the wire protocol", now);
    }
}

bool RailManager::assess(Link& link, FrameType type, std::span<const std::byte> body) {
    switch (type) {
        case FrameType::probe: return assessor_.on_probe(link, body, look_);
        case FrameType::probe_reply:
            if (const auto reply = model::parse_reply(body); reply) {
                if (!flooder_.on_reply(link, *reply, look_.at)) assessor_.on_reply(link, *reply, look_);
                return true;
            }
            return false;
        case FrameType::probe_memory: return assessor_.on_memory(link, body);
        default: return assessor_.on_model(link, body);
    }
}

bool RailManager::take_in(Link& link, Known& known, const FrameHeader& header, std::span<const std::byte> body,
                          base::Nanoseconds now) {
    const auto peer = link.peer;
    auto& talk = *known.talk;
    if (header.type == FrameType::proof) return true;  // once more: it proves nothing new and harms nothing
    const bool ack_now = (header.flags & frame_flag::ack_now) != 0;
    ++talk.owed;
    owe_ack(peer, talk, ack_now ? 0 : now + options_.ack_delay);
    auto& traffic = *link.traffic;
    if (!talk.session.arrived_next(header.seq)) {
        switch (talk.session.arrived(header.seq)) {
            case Session::Arrival::impossible: return false;
            case Session::Arrival::duplicate: ++traffic.duplicate_frames; return true;
            case Session::Arrival::fresh: break;
        }
    }
    talk.arrived = now;
    talk.last_link = link.slot;
    if (header.aux > small_bytes && talk.links.size() > 1 && link.outbox.empty() && now - link.answered >= apart_time) {
        link.answered = now;
        enqueue(link, ack_frame(talk), now);
    }
    ++traffic.received_frames;
    traffic.received_bytes += header.aux;
    const bool ordered = (header.flags & frame_flag::ordered) != 0;
    if (!ordered) return hand_up(peer, known, header, body, now);
    bool good = true;
    const auto up = [&](const FrameHeader& in, std::span<const std::byte> bytes) {
        good = hand_up(peer, known, in, bytes, now) && good;
    };
    return talk.session.in_order(header, body, up) && good;
}

/// A frame in its turn. False: it breaks the protocol.
bool RailManager::hand_up(std::uint32_t peer, Known& known, const FrameHeader& header, std::span<const std::byte> body,
                          base::Nanoseconds now) {
    if (known.left) return true;  // answers that crossed with its goodbye
    if (header.type >= FrameType::eager) [[likely]]
        return upper_.on_frame(peer, header, body);
    if (header.type == FrameType::bye) {
        known.left = true;
        recovery_.forget(peer);
        assessor_.stop(peer);  // what it has not read when it closes would be answered by a reset
        flooder_.stop(peer);
        upper_.on_peer_left(peer);
        upper_.on_peer_gone(peer, ErrorCode::peer_left);
        return true;
    }
    return header.type == FrameType::address && moved(peer, body, now);
}

void RailManager::break_off(Link& link, std::string_view cause, base::Nanoseconds now) {
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
    if (said_goodbye_ && link.state == LinkState::live && idle(peer)) link.leaving = true;
    const bool in_order = link.leaving;
    if (link.state == LinkState::live) {
        if (!peers_[peer].left && !link.leaving) lose(link, event.text, now);
        link_dropped(link, now);
    } else {
        connector_.went_down(link, event, now);
    }
    empty_outbox(link);
    links_.remove(link);
    if (peer == no_peer || peers_[peer].talk == nullptr) return;
    link_over(peer, nonce, now);
    auto& known = peers_[peer];
    if (known.left && known.talk->links.empty()) {
        end_session(peer, known.epoch, ErrorCode::peer_left);
        return;
    }
    if (in_order && known.talk->links.empty()) return end_in_order(peer, now);
    if (!was_live) return;  // nothing went over it, and whoever asked for it may be anybody
    // An acknowledgement, or credit, may have died with the link, while what it was for came over another one.
    known.talk->owed = std::max(known.talk->owed, 1U);
    owe_ack(peer, *known.talk, now);
    reroute(peer, slot, now);
    assert(links_.at(slot).unacked_bytes == 0);  // or its rail would seem busy for ever
    upper_.on_link_lost(peer, rail);
}

}  // namespace railmux::rails

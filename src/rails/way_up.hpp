// RailManager, the way up: the looks at the rails, and what every small message that comes in goes through, in line for the one
// who looks. What is rare is in events.cpp and receiving.cpp.
//
// Threads and lifetime: as RailManager's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/in_line.hpp"
#include "rails/rail_manager.hpp"
#include "rails/way_down.hpp"

namespace railmux::rails {

// What came in while nobody took the time may have been there for a while, or have woken us: it says nothing of the network.
inline constexpr base::Nanoseconds not_timed = base::millisecond;
// Fewer bytes of a look are acknowledgements and small messages, which were all there was; of more some may have been left.
inline constexpr std::size_t bytes_of_much = 4096;

/// Whether these are, or at least so many that a rail may have kept some back.
[[nodiscard]] bool brings_much(std::span<const transports::Event> events, std::size_t most) noexcept;

/// Of a frame that has come for the first time.
RAILMUX_IN_LINE void note_arrival(Link& link, Conversation& talk, const FrameHeader& header, std::size_t bytes,
                                  base::Nanoseconds now) noexcept {
    talk.arrived = now;
    talk.newest = header.seq + 1;
    talk.last_link = link.slot;
    auto& traffic = *link.traffic;
    ++traffic.received_frames;
    if (bytes > sched::light_bytes) {
        ++link.heavy_received;
        talk.spreading.heavy_came(now);
    }
    traffic.received_bytes += header.aux;
    if (header.aux > sched::light_bytes) link.came = {.seq = header.seq, .when = link.arrival(now)};
}

template <typename Above>
RAILMUX_IN_LINE bool RailManager::poll(Above& above, base::Nanoseconds now) {
    now_ = now;
    bool any = now >= due_ && catch_up();
    if (assessor_.working()) [[unlikely]] {
        any = assessor_.step(now) || any;
        schedule(std::min(assessor_.next_step(), assessor_.repeat(now)));
    }
    const bool found = look_round(above, assessor_.timing(now), now) != Found::nothing;
    keeping_up_.looked(found, now);
    if (heard_.awaited()) [[unlikely]]
        static_cast<void>(catch_up());
    if (now >= next_deadline_) [[unlikely]] {
        keep_time(now);
        any = true;  // operations may have failed: whoever is about to sleep must look again
    }
    if (leaving_.any_late()) [[unlikely]] {
        leaving_.close_late(now);
        any = true;
    }
    if (outboxes_.any()) flush(now);
    return any || found;
}

template <typename Above>
RAILMUX_IN_LINE Found RailManager::look_round(Above& above, bool exact, base::Nanoseconds now) {
    if (watched_of_ != links_.changes()) [[unlikely]]
        list_rails();
    if (exact) [[unlikely]]
        rounds_.prefer(assessor_.timed_rail());  // what is timed there should not wait for the others
    if (now - rounds_.looks().looked >= seldom) [[unlikely]]
        look_everywhere();
    return rounds_.go(exact, now, [&](std::uint32_t rail) RAILMUX_LAMBDA_IN_LINE {
        return assessor_.may_look(rail, now) ? poll_rail(above, rail, exact, now) : Found::nothing;
    });
}

template <typename Above>
RAILMUX_IN_LINE Found RailManager::poll_rail(Above& above, std::uint32_t rail, bool exact, base::Nanoseconds now) {
    const auto begun = exact ? options_.clock() : now;
    const auto blind = exact ? watch_.looks(begun, rail) : not_timed;
    const auto count = rails_[rail].rail->poll(events_);
    if (exact) [[unlikely]]
        watch_.looked(options_.clock());
    if (count == 0) return Found::nothing;
    if (count == 1 && events_[0].kind == transports::EventKind::moved) {  // it mostly comes alone
        now_ = options_.clock();                                          // that took its time
        return Found::moved;
    }
    // A wait does not read the clock for each look; what comes in at last is to be timed all the same, and time limits
    // must not begin in the past.
    const bool news = take_note(rail, {events_.data(), count});
    const auto ended = exact || news ? options_.clock() : now;
    if (news) now = now_ = ended;
    exact_look_ = exact;
    if (exact) [[unlikely]] {
        const auto each = (ended - begun) / static_cast<base::Nanoseconds>(count);
        look_ = {.begun = begun, .at = ended, .blind = blind, .receive_cpu = each};
    }
    if (count > 1 ? brings_much({events_.data(), count}, batch) : events_[0].data.size() >= bytes_of_much)
        rounds_.left_some();
    for (std::size_t i = 0; i < count; ++i) handle(above, rail, events_[i], now);
    ledger_.settle(now, now - rounds_.looks().taken);
    return Found::events;
}

/// Before the first of these is handled: whether there is more than ends of what was posted. What would be posted now to a link
/// whose end is among them would be done after that end.
RAILMUX_IN_LINE bool RailManager::take_note(std::uint32_t rail, std::span<const transports::Event> events) noexcept {
    using transports::EventKind;
    bool news = false;
    for (const auto& event : events) {
        if (event.kind == EventKind::done) continue;
        news = true;
        if (event.kind != EventKind::link_down) [[likely]]
            continue;
        if (Link* link = links_.find(rail, event.link); link != nullptr) link->over = true;
    }
    return news;
}

template <typename Above>
RAILMUX_IN_LINE void RailManager::handle(Above& above, std::uint32_t rail, const transports::Event& event,
                                         base::Nanoseconds now) {
    using transports::EventKind;
    if (event.kind != EventKind::received) [[unlikely]] {
        if (event.kind == EventKind::moved) return;
        return event.kind == EventKind::done ? on_done(rail, event, now) : on_change(rail, event, now);
    }
    Link* const link = links_.find(rail, event.link);
    if (link == nullptr) return;
    if (link->state == LinkState::live) [[likely]]
        return on_received(above, *link, event, now);
    if (link->state == LinkState::closing) return;
    static_cast<void>(catch_up());  // as in on_change
    connector_.received(*link, event.data, now);
}

template <typename Above>
RAILMUX_IN_LINE void RailManager::on_received(Above& above, Link& link, const transports::Event& event,
                                              base::Nanoseconds now) {
    link.said_at = now;
    link.host_had = event.came;
    const auto bytes = event.data;
    if (!take_next(above, link, bytes, now)) [[unlikely]]
        take_other(above, link, bytes, now);
}

/// Any frame.
template <typename Above>
[[gnu::noinline]] void RailManager::take_other(Above& above, Link& link, std::span<const std::byte> bytes,
                                               base::Nanoseconds now) {
    if (link.checksum) [[unlikely]] {
        const auto frame = opened(link, bytes, now);
        if (!frame) return;
        bytes = *frame;
    }
    const auto header = parse_header(bytes);
    if (!header) [[unlikely]]
        return break_off(link, "it sent a malformed frame", now);
    const auto body = bytes.subspan(FrameHeader::size);
    auto& known = peers_[link.peer];
    // What comes after our goodbye is for nobody. A session that is over here may go on there, and its numbers make no sense.
    if (leaving_.said_goodbye() && header->type != FrameType::closing && known.talk->late) [[unlikely]]
        return;
    if (header->type < FrameType::eager) [[unlikely]]
        return on_control(link, *header, body, now);
    if (!hear_ack(link, *known.talk, *header, now)) return;
    if (!take_in(above, link, known, *header, body, now)) break_off(link, "it broke the wire protocol", now);
}

/// The short way of most messages: one frame, the next in every respect. What it brings is handed up before anything else is
/// seen to. False: it is another frame.
template <typename Above>
RAILMUX_IN_LINE bool RailManager::take_next(Above& above, Link& link, std::span<const std::byte> bytes,
                                            base::Nanoseconds now) {
    if (link.lane == nullptr || bytes.size() < FrameHeader::size) [[unlikely]]
        return false;
    auto& talk = *link.lane;
    const auto header = read_header(bytes.data());
    const bool plain = header.type == FrameType::eager || header.type == FrameType::bundle;
    if (!plain || !talk.session.is_next(header)) [[unlikely]]
        return false;
    talk.session.took_next();
    ++talk.owed.frames;
    if (!above.on_frame(link.peer, header, bytes.subspan(FrameHeader::size))) [[unlikely]] {
        break_off(link, "it broke the wire protocol", now);
        return true;
    }
    note_arrival(link, talk, header, bytes.size(), now);
    owe_ack(link.peer, talk, now);
    static_cast<void>(hear_ack(link, talk, header, now));
    return true;
}

template <typename Above>
RAILMUX_IN_LINE bool RailManager::take_in(Above& above, Link& link, Known& known, const FrameHeader& header,
                                          std::span<const std::byte> body, base::Nanoseconds now) {
    const auto peer = link.peer;
    auto& talk = *known.talk;
    ++talk.owed.frames;
    owe_ack(peer, talk, now);
    if ((header.flags & frame_flag::ack_now) != 0) [[unlikely]]
        hurry_ack(peer, talk);
    if (!talk.session.arrived_next(header.seq)) [[unlikely]] {
        const auto arrival = talk.session.arrived(header.seq);
        if (arrival == Session::Arrival::impossible) return false;
        talk.owed.came(talk.session.missing());
        if (arrival == Session::Arrival::duplicate) {
            ++link.traffic->duplicate_frames;
            return true;
        }
    }
    if ((header.flags & frame_flag::timed) != 0) [[unlikely]]
        tell_time(link, talk, header.seq, now);
    note_arrival(link, talk, header, FrameHeader::size + body.size(), now);
    if (header.type == FrameType::fin) link.bulk_received += header.aux;
    const bool ordered = (header.flags & frame_flag::ordered) != 0;
    if (!ordered) return hand_up(above, peer, known, header, body, now);
    bool good = true;
    const auto up = [&](const FrameHeader& in, std::span<const std::byte> bytes)
                        RAILMUX_LAMBDA_IN_LINE { good = hand_up(above, peer, known, in, bytes, now) && good; };
    return talk.session.in_order(header, body, up) && good;
}

/// A frame in its turn. False: it breaks the protocol.
template <typename Above>
RAILMUX_IN_LINE bool RailManager::hand_up(Above& above, std::uint32_t peer, Known& known, const FrameHeader& header,
                                          std::span<const std::byte> body, base::Nanoseconds now) {
    if (known.left) return true;  // answers that crossed with its goodbye
    if (header.type >= FrameType::eager) [[likely]]
        return above.on_frame(peer, header, body);
    return hand_up_own(peer, known, header, body, now);
}

/// What acknowledgements release is put off: what the frame brings is more likely to be waited for. Only if something waits
/// for it, it is done in this look, as whoever gets the frame's message may not look again for long; and in the next one if it
/// was more than some small frames. Of several from one link the newest says all; credit counts at once, because without it
/// messages would take the long way. False: the link is given up.
RAILMUX_IN_LINE bool RailManager::hear_ack(Link& link, Conversation& talk, const FrameHeader& header,
                                           base::Nanoseconds now) {
    const bool credit = talk.take_credit(header);
    const auto hearing = talk.session.hear(header.ack);
    if (hearing == Session::Hearing::impossible) [[unlikely]] {
        break_off(link, "it acknowledged what was never sent", now);
        return false;
    }
    const bool news = hearing == Session::Hearing::news;
    if (news) ledger_.heard(link, talk, header, now);
    if (!news && !(credit && talk.hungry)) return true;  // as in a flood from one side
    heard_.note(link, header, credit, now, rounds_.looks().taken);
    due_ = std::min(due_, now + put_off_longest);
    if (talk.acks_wanted || feeder_.any()) [[unlikely]]
        want_heard(link, talk, header, now);
    return true;
}

}  // namespace railmux::rails

// RailManager, the way up: a frame from its link to the layer above.
#include "base/in_line.hpp"
#include "rails/rail_manager.hpp"

namespace railmux::rails {

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
        on_ack(link, talk, header, body, now);
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

RAILMUX_IN_LINE bool RailManager::take_in(Link& link, Known& known, const FrameHeader& header,
                                          std::span<const std::byte> body, base::Nanoseconds now) {
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
    talk.newest = header.seq + 1;
    talk.last_link = link.slot;
    if ((header.flags & frame_flag::timed) != 0) [[unlikely]]
        tell_time(link, talk, header.seq, now);
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
RAILMUX_IN_LINE bool RailManager::hand_up(std::uint32_t peer, Known& known, const FrameHeader& header,
                                          std::span<const std::byte> body, base::Nanoseconds now) {
    if (known.left) return true;  // answers that crossed with its goodbye
    if (header.type >= FrameType::eager) [[likely]]
        return upper_.on_frame(peer, header, body);
    return hand_up_own(peer, known, header, body, now);
}

bool RailManager::hand_up_own(std::uint32_t peer, Known& known, const FrameHeader& header,
                              std::span<const std::byte> body, base::Nanoseconds now) {
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

// --- Acknowledgements ------------------------------------------------------------------------------------------------

/// What acknowledgements release is put off: what the frame brings is more likely to be waited for. Only if something waits
/// for it, it is done in this look, as whoever gets the frame's message may not look again for long; and in the next one if it
/// was more than some small frames. Of several from one link the newest says all; credit counts at once, because without it
/// messages would take the long way. False: the link is given up.
RAILMUX_IN_LINE bool RailManager::hear_ack(Link& link, Conversation& talk, const FrameHeader& header,
                                           base::Nanoseconds now) {
    const bool credit = take_credit(talk, header);
    const auto hearing = talk.session.hear(header.ack);
    if (hearing == Session::Hearing::impossible) {
        break_off(link, "it acknowledged what was never sent", now);
        return false;
    }
    const bool news = hearing == Session::Hearing::news;
    if (news) ledger_.heard(link, talk, header, now);
    if (!news && !(credit && talk.hungry)) return true;  // as in a flood from one side
    auto& heard = link.heard;
    if (!heard.listed) heard_.push_back(link.slot);
    heard = {.ack = header.ack,
             .with = header.type >= FrameType::eager ? header.aux : 0,
             .flags = header.flags,
             .held = header.held,
             .at = now,
             .unseen = now - looks_.quiet,
             .credit = credit || heard.credit,
             .listed = true};
    const bool light = talk.heavy - talk.session.acknowledged() - 1 >= Session::window && tracer_ == nullptr;
    due_ = light ? std::min(due_, now + put_off_longest) : 0;
    heard_awaited_ = heard_awaited_ || talk.hungry || !talk.waiting.empty() || !talk.session.open_for_messages() ||
                     !bulk_peers_.empty();
    return true;
}

}  // namespace railmux::rails

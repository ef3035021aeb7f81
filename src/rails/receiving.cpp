// RailManager, the way up (way_up.hpp): frames that are rare.
#include "rails/way_up.hpp"

namespace railmux::rails {

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
        if (!assess(link, header.type, body, now)) break_off(link, "it sent a malformed probe", now);
    } else if (!take_in(upper_, link, known, header, body, now)) {
        break_off(link, "it broke the wire protocol", now);
    }
}

bool RailManager::assess(Link& link, FrameType type, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto look = exact_look_ ? look_ : Look{.begun = now, .at = now, .blind = not_timed};
    switch (type) {
        case FrameType::probe: return assessor_.on_probe(link, body, look);
        case FrameType::probe_reply:
            if (const auto reply = model::parse_reply(body); reply) {
                const auto payload = body.subspan(model::ProbeReply::size);
                if (!flooder_.on_reply(link, *reply, look.at)) assessor_.on_reply(link, *reply, payload, look);
                return true;
            }
            return false;
        case FrameType::probe_memory: return assessor_.on_memory(link, body);
        default: return assessor_.on_model(link, body);
    }
}

bool RailManager::hand_up_own(std::uint32_t peer, Known& known, const FrameHeader& header,
                              std::span<const std::byte> body, base::Nanoseconds now) {
    if (header.type == FrameType::bye) {
        known.left = true;
        for (const auto slot : known.talk->links) links_.at(slot).lane = nullptr;
        recovery_.forget(peer);
        assessor_.stop(peer);  // what it has not read when it closes would be answered by a reset
        flooder_.stop(peer);
        upper_.on_peer_left(peer);
        upper_.on_peer_gone(peer, ErrorCode::peer_left);
        return true;
    }
    return header.type == FrameType::address && moved(peer, body, now);
}

}  // namespace railmux::rails

// RailManager, the way up (way_up.hpp): frames that are rare, and those of links with checksums, which are looked at here
// before anybody believes them: a link that brings something else than was sent is given up, and rests for a while.
#include "rails/way_up.hpp"

#include <fmt/format.h>

#include "base/crc32c.hpp"
#include "rails/seal.hpp"

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
        static_cast<void>(catch_up());                   // links are about to change
        const bool good =
            header.type == FrameType::lost ? lost_there(link.peer, body, now) : settling_.asked(link, body, now);
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
    if (header.type == FrameType::proof) return;  // once more: it proves nothing new, and nothing is stamped on it
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

/// What had come over links that are over is acknowledged here; what had not never will, and is sent again. False: that is
/// malformed.
bool RailManager::on_settled(Link& link, const FrameHeader& header, std::span<const std::byte> body,
                             base::Nanoseconds now) {
    const auto answer = Settling::parse(body);
    if (!answer) return false;
    const auto peer = link.peer;
    auto& known = peers_[peer];
    auto acks = header;
    acks.aux = answer->ack;
    const bool credit = known.talk->take_credit(header);
    if (!take_acks(link, acks, answer->sack, credit, now)) {
        break_off(link, "it acknowledged what was never sent", now);
        return true;
    }
    if (feeder_.offered()) heard_.await();
    if (!settling_.answered(*known.talk, *answer, now)) return true;
    static_cast<void>(catch_up());
    known.talk->session.for_each_unacknowledged([&](Frame& frame) {
        if (!frame.parked) return;
        frame.parked = false;
        if (frame.denied) frame.drop_put();
        route_again(peer, *known.talk, frame, now);
        if (frame.link != no_link) ++known.traffic[links_.at(frame.link).rail].resent_frames;
    });
    return true;
}

// --- Checksums -------------------------------------------------------------------------------------------------------

/// The frame in `bytes`; nothing if it, or the bulk that it closes, is not what was sent: then the link is broken off.
std::optional<std::span<const std::byte>> RailManager::opened(Link& link, std::span<const std::byte> bytes,
                                                              base::Nanoseconds now) {
    const auto opened = open_sealed(bytes);
    if (!opened) {
        corrupted(link, "a frame", now);
        return std::nullopt;
    }
    const auto header = parse_header(opened->frame);
    if (!header || header->type != FrameType::fin || (header->flags & frame_flag::denied) != 0) return opened->frame;
    const auto bulk = upper_.closed_by(link.peer, opened->frame.subspan(FrameHeader::size));
    if (bulk.empty() || base::crc32c(bulk) == opened->put_sum) return opened->frame;
    corrupted(link, fmt::format("{} bytes of a large message", bulk.size()), now);
    return std::nullopt;
}

void RailManager::corrupted(Link& link, std::string_view what, base::Nanoseconds now) {
    ++peers_[link.peer].traffic[link.rail].corrupted_frames;
    link.corrupted = true;
    break_off(link, fmt::format("corrupted data (the checksum of {} is wrong)", what), now);
}

}  // namespace railmux::rails

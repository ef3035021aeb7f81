// RailManager: corrupted data. What a link with checksums brings is looked at here before anybody believes it; a link that
// brings something else than was sent is given up, and rests for a while.
//
// What it had carried goes out again, but for puts: a second one to the same place would write over bytes that have been
// checked and counted, and might be corrupted, too. So they wait until the other side says that the link is over at its end,
// where nothing more can come then, and what had come by then. The same without checksums where rails end links for wrong puts:
// if all had come the region is closed, and what is put again would cost one link after the other.
#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.hpp"
#include "rails/rail_manager.hpp"
#include "rails/seal.hpp"

namespace railmux::rails {

namespace {

constexpr std::size_t settle_size = 8;    // nonce
constexpr std::size_t settled_size = 12;  // nonce, u32 from which the bits count that follow

Frame* numbered_frame(FramePool& pool, FrameType type, std::size_t body) {
    Frame* frame = pool.take(FrameHeader::size + body);
    frame->type = type;
    frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + body);
    return frame;
}

}  // namespace

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

/// Whether a put to a region that is closed by now would cost a link.
bool RailManager::puts_end_links() const noexcept {
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
        if (rails_[rail].traits().bad_put_ends_link) return true;
    }
    return false;
}

/// Of a frame that is on no link any more, as the one that it went to is over here. True: it waits until that is settled.
bool RailManager::park(const Link& link, Frame& frame) noexcept {
    if (frame.piece_count == 0 || !(link.checksum || puts_end_links())) return false;
    frame.link = no_link;
    return frame.parked = true;
}

/// What is parked may be what keeps the window from moving: so these do not wait for that.
void RailManager::send_settling(std::uint32_t peer, Frame* frame, base::Nanoseconds now) {
    auto& talk = *peers_[peer].talk;
    if (talk.session.open_for_settling()) {
        enter(peer, talk, frame, now);
    } else {
        talk.waiting.push(frame);
    }
}

void RailManager::ask_to_settle(std::uint32_t peer, std::uint64_t nonce, base::Nanoseconds now) {
    peers_[peer].talk->settling.push_back(nonce);
    Frame* frame = numbered_frame(pool_, FrameType::settle, settle_size);
    base::store(frame->data() + FrameHeader::size, nonce);
    send_settling(peer, frame, now);
}

/// False: that is malformed.
bool RailManager::on_settle(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    if (body.size() != settle_size) return false;
    const auto nonce = base::load<std::uint64_t>(body.data());
    auto& talk = *peers_[peer].talk;
    if (nonce == 0 || (!talk.session.open_for_settling() && !talk.waiting.empty())) return false;
    static_cast<void>(catch_up());  // links are about to change
    Link* found = nullptr;
    links_.for_each([&](Link& link) {
        if (link.nonce == nonce && (link.peer == peer || link.peer == no_peer)) found = &link;
    });
    if (found == nullptr) {
        answer_settle(peer, nonce, now);
        return true;
    }
    found->peer = peer;
    if (std::ranges::find(talk.to_settle, nonce) == talk.to_settle.end()) talk.to_settle.push_back(nonce);
    if (found->state == LinkState::live) {
        break_off(*found, "the other side lost it", now);
    } else if (found->state != LinkState::closing) {
        rails_[found->rail].rail->disconnect(found->id);
        found->state = LinkState::closing;
    }
    return true;
}

/// A link is over here: nothing more comes over it.
void RailManager::link_over(std::uint32_t peer, std::uint64_t nonce, base::Nanoseconds now) {
    const bool asked = std::erase(peers_[peer].talk->to_settle, nonce) > 0;
    if (asked && !peers_[peer].left) answer_settle(peer, nonce, now);
}

void RailManager::answer_settle(std::uint32_t peer, std::uint64_t nonce, base::Nanoseconds now) {
    const auto& session = peers_[peer].talk->session;
    std::array<std::byte, Session::max_sack_bytes> sack;
    const auto sack_bytes = session.write_sack(sack);
    Frame* frame = numbered_frame(pool_, FrameType::settled, settled_size + sack_bytes);
    auto* body = frame->data() + FrameHeader::size;
    base::store(body, nonce);
    base::store(body + settle_size, session.ack());
    std::copy_n(sack.begin(), sack_bytes, body + settled_size);
    send_settling(peer, frame, now);
}

/// What had come over the link is acknowledged here; what had not never will, and is sent again. False: that is malformed.
bool RailManager::on_settled(const Link& link, const FrameHeader& header, std::span<const std::byte> body,
                             base::Nanoseconds now) {
    if (body.size() < settled_size) return false;
    const auto peer = link.peer;
    auto& known = peers_[peer];
    auto acks = header;
    acks.aux = base::load<std::uint32_t>(body.data() + settle_size);
    if (!take_acks(link, acks, body.subspan(settled_size), false, now)) return false;
    auto& settling = known.talk->settling;
    const auto asked = std::ranges::find(settling, base::load<std::uint64_t>(body.data()));
    if (asked == settling.end()) return false;
    settling.erase(asked);               // one: a link to ourselves has two ends, each of which asked
    if (!settling.empty()) return true;  // parked frames do not tell for which of the links
    static_cast<void>(catch_up());
    known.talk->session.for_each_unacknowledged([&](Frame& frame) {
        if (!std::exchange(frame.parked, false)) return;
        if (frame.denied) drop_put(frame);
        route(peer, *known.talk, &frame, now);
        if (frame.link != no_link) ++known.traffic[links_.at(frame.link).rail].resent_frames;
    });
    return true;
}

}  // namespace railmux::rails

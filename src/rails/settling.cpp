// RailManager: corrupted data. What a link with checksums brings is looked at here before anybody believes it; a link that
// brings something else than was sent is given up, and rests for a while.
//
// What it had carried goes out again, but for puts: a second one to the same place would write over bytes that have been
// checked and counted, and might be corrupted, too. So they wait until the other side says that the link is over at its end,
// where nothing more can come then, and what had come by then. Question and answer have no places in the window: what waits for
// them may be what keeps it from moving, and it would be full after so many losses. They are lost with the link that they go
// over, and so all is asked again whenever a link is over or up. The same without checksums where rails end links
// for wrong puts: if all had come the region is closed, and what is put again would cost one link after the other.
#include <fmt/format.h>

#include <algorithm>

#include "base/crc32c.hpp"
#include "rails/rail_manager.hpp"
#include "rails/seal.hpp"

namespace railmux::rails {

namespace {

constexpr std::size_t nonce_size = 8;
constexpr std::size_t count_size = 4;
constexpr std::size_t settle_most = 64;  // links in a question or an answer
constexpr std::size_t most_answered =
    8;  // links of which it is told again that they are over; others are asked for again

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

/// A link is up: first of all what helps parked frames on, as it may not live for as long as a question and its answer take
/// behind all else. So answers are given once more, too, if the link is over that they went by: they may not have been heard.
void RailManager::settle_anew(Conversation& talk, base::Nanoseconds now) {
    if (talk.links.empty()) return;
    Link& link = ack_route_.least_busy(talk);
    std::vector<std::uint64_t> nonces;
    for (auto& answered : talk.answered) {
        const auto is_it = [&](std::uint32_t slot) { return links_.at(slot).nonce == answered.by; };
        if (std::ranges::any_of(talk.links, is_it)) continue;
        answered.by = link.nonce;
        nonces.push_back(answered.nonce);
    }
    if (!nonces.empty()) send_settled(talk, link, nonces, now);
    ask_to_settle(talk, now);
}

/// A link is over, or a new one up: a question may have been lost, or an answer.
void RailManager::ask_to_settle(Conversation& talk, base::Nanoseconds now) {
    if (talk.links.empty() || talk.settling.empty()) return;
    std::array<std::byte, settle_most * nonce_size> body;
    const auto count = std::min(talk.settling.size(), settle_most);
    for (std::size_t i = 0; i < count; ++i) base::store(body.data() + i * nonce_size, talk.settling[i]);
    const auto used = std::span<const std::byte>(body).first(count * nonce_size);
    enqueue(ack_route_.least_busy(talk), probe_frame(pool_, FrameType::settle, used, 0), now);
}

/// False: that is malformed.
bool RailManager::on_settle(Link& link, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto count = body.size() / nonce_size;
    if (count == 0 || count > settle_most || body.size() % nonce_size != 0) return false;
    if (link.asks_too_much()) {  // it asks again over another link, if it means it
        break_off(link, "it does not take the answers that it asks for", now);
        return true;
    }
    static_cast<void>(catch_up());  // links are about to change
    const auto peer = link.peer;
    const auto by = link.nonce;
    std::vector<std::uint64_t> over;
    for (std::size_t i = 0; i < count; ++i) {
        const auto nonce = base::load<std::uint64_t>(body.data() + i * nonce_size);
        if (nonce == 0) return false;
        if (ask_over(peer, {.nonce = nonce, .by = by}, now)) over.push_back(nonce);
    }
    if (!over.empty()) answer_settle(*peers_[peer].talk, by, over, now);
    return true;
}

/// Whether the link is over here; else it soon is, and that is answered then.
bool RailManager::ask_over(std::uint32_t peer, const Conversation::Asked& asked, base::Nanoseconds now) {
    Link* found = nullptr;
    links_.for_each([&](Link& other) {
        if (other.nonce == asked.nonce && (other.peer == peer || other.peer == no_peer)) found = &other;
    });
    if (found == nullptr) return true;
    found->peer = peer;
    auto& to_settle = peers_[peer].talk->to_settle;
    std::erase_if(to_settle, [&](const auto& before) { return before.nonce == asked.nonce; });
    to_settle.push_back(asked);
    if (found->state == LinkState::live) {
        break_off(*found, "the other side lost it", now);
    } else if (found->state != LinkState::closing) {
        rails_[found->rail].rail->disconnect(found->id);
        found->state = LinkState::closing;
    }
    return false;
}

/// A link is over here: nothing more comes over it.
void RailManager::link_over(std::uint32_t peer, std::uint64_t nonce, base::Nanoseconds now) {
    auto& to_settle = peers_[peer].talk->to_settle;
    const auto found = std::ranges::find(to_settle, nonce, &Conversation::Asked::nonce);
    if (found == to_settle.end()) return;
    bool other_end = false;  // of a link to ourselves
    links_.for_each([&](const Link& link) { other_end = other_end || (link.nonce == nonce && link.peer == peer); });
    if (other_end) return;
    const auto by = found->by;
    to_settle.erase(found);
    if (!peers_[peer].left) answer_settle(*peers_[peer].talk, by, {&nonce, 1}, now);
}

/// By the link that it was asked by: if that is lost, with the answer or before, whoever asked sees it, and asks again.
void RailManager::answer_settle(Conversation& talk, std::uint64_t by, std::span<const std::uint64_t> nonces,
                                base::Nanoseconds now) {
    for (const auto nonce : nonces) {
        std::erase_if(talk.answered, [&](const auto& before) { return before.nonce == nonce; });
        if (talk.answered.size() == most_answered) talk.answered.erase(talk.answered.begin());
        talk.answered.push_back({.nonce = nonce, .by = by});
    }
    const auto link = std::ranges::find_if(talk.links, [&](std::uint32_t slot) { return links_.at(slot).nonce == by; });
    if (link != talk.links.end()) send_settled(talk, links_.at(*link), nonces, now);
}

void RailManager::send_settled(const Conversation& talk, Link& link, std::span<const std::uint64_t> nonces,
                               base::Nanoseconds now) {
    std::array<std::byte, 2 * count_size + settle_most * nonce_size + Session::max_sack_bytes> body;
    auto* at = body.data();
    base::store(at, static_cast<std::uint32_t>(nonces.size()));
    at += count_size;
    for (const auto nonce : nonces) {
        base::store(at, nonce);
        at += nonce_size;
    }
    base::store(at, talk.session.ack());
    at += count_size;
    std::array<std::byte, Session::max_sack_bytes> sack;
    at = std::copy_n(sack.begin(), talk.session.write_sack(sack), at);
    enqueue(link, probe_frame(pool_, FrameType::settled, {body.data(), at}, 0), now);
}

/// What had come over the link is acknowledged here; what had not never will, and is sent again. There may be several answers,
/// of which the first is as good as any. False: that is malformed.
bool RailManager::on_settled(Link& link, const FrameHeader& header, std::span<const std::byte> body,
                             base::Nanoseconds now) {
    if (body.size() < 2 * count_size) return false;
    const auto count = base::load<std::uint32_t>(body.data());
    if (count > settle_most || body.size() < 2 * count_size + count * nonce_size) return false;
    const auto nonces = body.subspan(count_size, count * nonce_size);
    const auto rest = body.subspan(count_size + nonces.size());
    const auto peer = link.peer;
    auto& known = peers_[peer];
    auto acks = header;
    acks.aux = base::load<std::uint32_t>(rest.data());
    const bool credit = known.talk->take_credit(header);
    if (!take_acks(link, acks, rest.subspan(count_size), credit, now)) {
        break_off(link, "it acknowledged what was never sent", now);
        return true;
    }
    auto& settling = known.talk->settling;
    const bool not_all_asked = settling.size() > settle_most;
    bool asked = false;
    for (std::uint32_t i = 0; i < count; ++i) {
        asked = std::erase(settling, base::load<std::uint64_t>(nonces.data() + i * nonce_size)) > 0 || asked;
    }
    if (asked && not_all_asked) ask_to_settle(*known.talk, now);
    if (!asked || !settling.empty()) return true;  // parked frames do not tell for which of the links
    static_cast<void>(catch_up());
    known.talk->session.for_each_unacknowledged([&](Frame& frame) {
        if (!frame.parked) return;
        frame.parked = false;
        if (frame.denied) drop_put(frame);
        route_again(peer, *known.talk, frame, now);
        if (frame.link != no_link) ++known.traffic[links_.at(frame.link).rail].resent_frames;
    });
    return true;
}

}  // namespace railmux::rails

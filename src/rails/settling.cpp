#include "rails/settling.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/bytes.hpp"
#include "rails/assessor.hpp"

namespace railmux::rails {

namespace {

constexpr std::size_t nonce_size = 8;
constexpr std::size_t count_size = 4;
constexpr std::size_t settle_most = 64;   // links in a question or an answer
constexpr std::size_t most_answered = 8;  // of those told again that they are over; others are asked for again

}  // namespace

/// Whether a put to a region that is closed by now would cost a link.
bool Settling::puts_end_links() const noexcept {
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
        if (rails_[rail].traits().bad_put_ends_link) return true;
    }
    return false;
}

bool Settling::park(const Link& link, Frame& frame) noexcept {
    if (frame.piece_count == 0 || !(link.checksum || puts_end_links())) return false;
    frame.link = no_link;
    return frame.parked = true;
}

void Settling::link_up(Conversation& talk, base::Nanoseconds now) {
    if (talk.links.empty()) return;
    Link& link = route_.least_busy(talk);
    std::vector<std::uint64_t> nonces;
    for (auto& answered : talk.answered) {
        const auto is_it = [&](std::uint32_t slot) { return links_.at(slot).nonce == answered.by; };
        if (std::ranges::any_of(talk.links, is_it)) continue;
        answered.by = link.nonce;
        nonces.push_back(answered.nonce);
    }
    if (!nonces.empty()) send_answer(talk, link, nonces, now);
    ask(talk, now);
}

void Settling::ask(const Conversation& talk, base::Nanoseconds now) {
    if (talk.links.empty() || talk.settling.empty()) return;
    std::array<std::byte, settle_most * nonce_size> body;
    const auto count = std::min(talk.settling.size(), settle_most);
    for (std::size_t i = 0; i < count; ++i) base::store(body.data() + i * nonce_size, talk.settling[i]);
    const auto used = std::span<const std::byte>(body).first(count * nonce_size);
    host_.enqueue(route_.least_busy(talk), probe_frame(pool_, FrameType::settle, used), now);
}

bool Settling::asked(Link& link, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto count = body.size() / nonce_size;
    if (count == 0 || count > settle_most || body.size() % nonce_size != 0) return false;
    if (link.asks_too_much()) {  // it asks again over another link, if it means it
        host_.break_off(link, "it does not take the answers that it asks for", now);
        return true;
    }
    const auto peer = link.peer;
    const auto by = link.nonce;
    std::vector<std::uint64_t> over;
    for (std::size_t i = 0; i < count; ++i) {
        const auto nonce = base::load<std::uint64_t>(body.data() + i * nonce_size);
        if (nonce == 0) return false;
        if (is_over(peer, {.nonce = nonce, .by = by}, now)) over.push_back(nonce);
    }
    if (!over.empty()) answer(*peers_[peer].talk, by, over, now);
    return true;
}

/// Whether the link is over here; else it soon is, and that is answered then.
bool Settling::is_over(std::uint32_t peer, const Conversation::Asked& asked, base::Nanoseconds now) {
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
        host_.break_off(*found, "the other side lost it", now);
    } else if (found->state != LinkState::closing) {
        rails_[found->rail].rail->disconnect(found->id);
        found->state = LinkState::closing;
    }
    return false;
}

void Settling::link_over(std::uint32_t peer, std::uint64_t nonce, base::Nanoseconds now) {
    auto& to_settle = peers_[peer].talk->to_settle;
    const auto found = std::ranges::find(to_settle, nonce, &Conversation::Asked::nonce);
    if (found == to_settle.end()) return;
    bool other_end = false;  // of a link to ourselves
    links_.for_each([&](const Link& link) { other_end = other_end || (link.nonce == nonce && link.peer == peer); });
    if (other_end) return;
    const auto by = found->by;
    to_settle.erase(found);
    if (!peers_[peer].left) answer(*peers_[peer].talk, by, {&nonce, 1}, now);
}

/// By the link that it was asked by: if that is lost, with the answer or before, whoever asked sees it, and asks again.
void Settling::answer(Conversation& talk, std::uint64_t by, std::span<const std::uint64_t> nonces,
                      base::Nanoseconds now) {
    for (const auto nonce : nonces) {
        std::erase_if(talk.answered, [&](const auto& before) { return before.nonce == nonce; });
        if (talk.answered.size() == most_answered) talk.answered.erase(talk.answered.begin());
        talk.answered.push_back({.nonce = nonce, .by = by});
    }
    const auto link = std::ranges::find_if(talk.links, [&](std::uint32_t slot) { return links_.at(slot).nonce == by; });
    if (link != talk.links.end()) send_answer(talk, links_.at(*link), nonces, now);
}

void Settling::send_answer(const Conversation& talk, Link& link, std::span<const std::uint64_t> nonces,
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
    host_.enqueue(link, probe_frame(pool_, FrameType::settled, {body.data(), at}), now);
}

std::optional<Settling::Answer> Settling::parse(std::span<const std::byte> body) noexcept {
    if (body.size() < 2 * count_size) return std::nullopt;
    const auto count = base::load<std::uint32_t>(body.data());
    if (count > settle_most || body.size() < 2 * count_size + count * nonce_size) return std::nullopt;
    const auto nonces = body.subspan(count_size, count * nonce_size);
    const auto rest = body.subspan(count_size + nonces.size());
    return Answer{.nonces = nonces, .ack = base::load<std::uint32_t>(rest.data()), .sack = rest.subspan(count_size)};
}

bool Settling::answered(Conversation& talk, const Answer& answer, base::Nanoseconds now) {
    const bool not_all_asked = talk.settling.size() > settle_most;
    bool any = false;
    for (std::size_t at = 0; at < answer.nonces.size(); at += nonce_size) {
        any = std::erase(talk.settling, base::load<std::uint64_t>(answer.nonces.data() + at)) > 0 || any;
    }
    if (any && not_all_asked) ask(talk, now);
    return any && talk.settling.empty();
}

}  // namespace railmux::rails

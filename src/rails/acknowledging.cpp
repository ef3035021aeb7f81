// RailManager: acknowledging what has come, telling how much of it the application has taken, and hearing the same of what we
// have sent.
#include <algorithm>
#include <array>
#include <utility>

#include "rails/rail_manager.hpp"

namespace railmux::rails {

namespace {
// In some 100 us, as acknowledgements go.
constexpr std::uint64_t some_data = 4 * 1024;
// Tells wide rails from narrow ones: at 1 Gbit/s they take 131 us.
constexpr std::uint64_t wide_bytes = 16 * 1024;
}  // namespace

void RailManager::run_acks(base::Nanoseconds now) {
    const auto talk_of = [&](std::uint32_t peer) { return peers_[peer].talk.get(); };
    const auto owed = [&](std::uint32_t peer) {
        auto* talk = talk_of(peer);
        return talk == nullptr ? nullptr : &talk->owed;
    };
    schedule(owed_acks_.run(now, owed, [&](std::uint32_t peer) { send_ack(*talk_of(peer), now); }));
}

/// What has arrived. Nobody acknowledges it, and it may be lost or come twice. `timed` has just come, and was to be timed.
Frame* RailManager::ack_frame(const Conversation& talk, std::optional<std::uint32_t> timed, base::Nanoseconds now) {
    std::array<std::byte, Session::max_sack_bytes> sack;
    const auto sack_bytes = talk.session.write_sack(sack);
    const auto time_bytes = timed ? sizeof(std::uint64_t) : 0;
    Frame* frame = pool_.take(FrameHeader::size + time_bytes + sack_bytes);
    frame->type = FrameType::ack;
    frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + time_bytes + sack_bytes);
    frame->acked = true;  // it is released when it is done
    // A selective acknowledgement counts from the number in its header, so that number may not be stamped anew.
    FrameHeader header{.type = FrameType::ack, .aux = talk.session.ack()};
    auto* body = frame->data() + FrameHeader::size;
    if (timed) {
        header.flags = frame->flags = frame_flag::timed;
        header.seq = *timed;
        base::store(body, static_cast<std::uint64_t>(now));
    }
    write_header(frame->data(), header);
    std::copy_n(sack.begin(), sack_bytes, body + time_bytes);
    return frame;
}

/// Tells when frame `seq` came: now, over this link.
void RailManager::tell_time(Link& link, const Conversation& talk, std::uint32_t seq, base::Nanoseconds now) {
    if (!link.asks_too_much()) enqueue(link, ack_frame(talk, seq, now), now);
}

/// Of the links of a peer that has any, the one with least to send. One that is spare because processors move it does not
/// count: where it gets on, so does the one that they use.
Link& RailManager::least_busy(const Conversation& talk) noexcept {
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
        const Link& one = links_.at(a);
        const Link& other = links_.at(b);
        const auto left_out = [&](const Link& link) {
            const auto& candidate = talk.candidates[link.place];
            return candidate.spare && candidate.by_processors;
        };
        if (left_out(one) != left_out(other)) return left_out(other);
        return one.queued_bytes < other.queued_bytes;
    };
    return links_.at(*std::ranges::min_element(talk.links, before));
}

/// Whether the peer has sent data of late, and not only a few small messages. Asked once for each acknowledgement to it: what
/// came before the last one counts for half as much.
bool RailManager::brings_data(Conversation& talk) noexcept {
    std::uint64_t sum = 0;
    for (const auto slot : talk.links) sum += links_.at(slot).traffic->received_bytes;
    // Links come and go, and what they have brought with them.
    const auto more = sum - std::min(sum, std::exchange(talk.brought, sum));
    talk.brought_lately = talk.brought_lately / 2 + more;
    return talk.brought_lately >= some_data;
}

/// The one with the least latency, which is looked at and costs least. Under load latencies are known to some ten microseconds
/// only, and a narrow rail misses most what a packet costs it: so where data comes in, the one over which some would be there
/// first, were all idle. Unless what waits there would keep the acknowledgement for longer than it may be kept back.
Link& RailManager::link_for_ack(Conversation& talk, base::Nanoseconds now) noexcept {
    if (talk.links.size() == 1 || !policy_.predicts()) return least_busy(talk);
    ledger_.refresh(talk, now);
    const auto bytes = brings_data(talk) ? wide_bytes : 0;
    const auto idle = [&](const sched::Cost& cost) { return cost.latency + sched::times(bytes, cost.per_byte); };
    const auto before = [&](const sched::Candidate& one, const sched::Candidate& other) {
        return one.spare != other.spare ? other.spare : idle(one.cost) < idle(other.cost);
    };
    const auto best = std::ranges::min_element(talk.candidates, before);
    const auto waits = policy_.delivery(*best, FrameHeader::size, now) - best->cost.latency;
    if (waits > sched::to_ticks(owed_acks_.delay())) return least_busy(talk);
    return links_.at(talk.links[static_cast<std::size_t>(best - talk.candidates.begin())]);
}

void RailManager::send_ack(Conversation& talk, base::Nanoseconds now) {
    if (talk.links.empty()) return;  // it stays owed until there is a link again
    enqueue(link_for_ack(talk, now), ack_frame(talk), now);
    talk.owed.told();
}

// --- Hearing ---------------------------------------------------------------------------------------------------------

/// Something waits for what acknowledgements release, or it is much. Traces show each by itself.
void RailManager::want_heard(const Conversation& talk) noexcept {
    if (talk.heavy_outstanding() || tracer_ != nullptr) due_ = 0;
    heard_awaited_ = heard_awaited_ || talk.hungry || !talk.waiting.empty() || !bulk_peers_.empty();
}

bool RailManager::take_heard() {
    heard_awaited_ = false;
    if (heard_.empty()) return false;
    taking_.swap(heard_);
    base::Nanoseconds at = 0;
    base::Nanoseconds unseen = 0;
    for (const auto slot : taking_) {
        Link& link = links_.at(slot);
        auto heard = std::exchange(link.heard, {});
        if (!heard.listed || link.state != LinkState::live) continue;  // it was that of a link before
        at = heard.at;
        unseen = heard.at - heard.quiet;
        if (heard.header.type < FrameType::eager) heard.header.aux = 0;  // it is no payload
        if (!take_acks(link, heard.header, {}, heard.credit, heard.at)) {
            break_off(link, "it acknowledged what was never sent", heard.at);
        }
    }
    taking_.clear();
    ledger_.settle(at, unseen);
    return true;
}

void RailManager::on_ack(Link& link, Conversation& talk, const FrameHeader& header, std::span<const std::byte> body,
                         base::Nanoseconds now) {
    const Link::Timed* timed = nullptr;
    if ((header.flags & frame_flag::timed) != 0) {
        if (body.size() < sizeof(std::uint64_t)) return break_off(link, "it sent a malformed acknowledgement", now);
        timed = ledger_.timed(link, header, base::load<std::uint64_t>(body.data()), now);
        body = body.subspan(sizeof(std::uint64_t));
    }
    if (talk.session.hear(header.ack) == Session::Hearing::news) ledger_.heard(link, talk, header, now);
    const bool credit = talk.take_credit(header);
    if (!take_acks(link, header, body, credit, now)) {
        return break_off(link, "it acknowledged what was never sent", now);
    }
    if (timed != nullptr) ledger_.learn_from_timed(link, *timed, now);
}

bool RailManager::take_acks(const Link& link, const FrameHeader& header, std::span<const std::byte> sack, bool credit,
                            base::Nanoseconds now) {
    const auto peer = link.peer;
    auto& talk = *peers_[peer].talk;
    if (sack.size() > Session::max_sack_bytes) return false;
    talk.behind_there = (header.flags & frame_flag::behind) != 0;
    bool moved = credit;
    const auto take = [&](const auto& note) {
        Ledger::Taking taking(ledger_, link, header, now);
        const auto each = [&](Frame& frame) {
            moved = true;
            note(frame);
            taking(frame);
            frame.acked = true;
            release_if_free(peer, frame);
        };
        if (!talk.session.acknowledged(header.ack, {}, each)) return false;
        // The bits of an acknowledgement count from the number it was made with, which may be older than the one stamped on.
        return sack.empty() || talk.session.acknowledged(header.aux, sack, each);
    };
    const auto record = [&](const Frame& frame) {
        if (frame.link != no_link) tracer_->acknowledged(link, header, frame, talk, now);
    };
    if (!(tracer_ == nullptr ? take([](const Frame&) {}) : take(record))) return false;
    if (!moved) return true;
    if (!talk.groups.empty()) review_groups(talk, now);
    if (!talk.waiting.empty()) enter_waiting(peer, talk, now);
    if (!bulk_peers_.empty()) feed_all(now);
    talk.hungry = false;
    talk.acks_wanted = talk.heavy_outstanding() || !talk.waiting.empty() || tracer_ != nullptr;
    upper_.on_sendable(peer);
    return true;
}

}  // namespace railmux::rails

#include "rails/ledger.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <limits>
#include <utility>

namespace railmux::rails {

namespace {

/// At most 4 s, and never 0, which means that nothing was predicted.
std::uint32_t narrowed_ns(sched::Ticks ticks) noexcept {
    constexpr sched::Ticks most = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::clamp<sched::Ticks>(ticks / sched::ticks_per_ns, 1, most));
}

}  // namespace

Ledger::Ledger(std::size_t rails, sched::Policy& policy, PeerTable& peers, LinkTable& links, const Looks& looks)
    : policy_(policy), peers_(peers), links_(links), looks_(looks), paces_(rails), node_(rails) {
    late_.reserve(2 * most_late);
}

// --- Handing over ----------------------------------------------------------------------------------------------------

void Ledger::charge(Link& link, Frame& frame, base::Nanoseconds now) {
    Frame* const one = &frame;
    frame.alone = link.unacked_bytes == 0 && ours(link.rail);
    charge_row(link, {&one, 1}, now, now);
}

/// The same of frames that went to the link in a row. All but the first count as given to it with the last; one that is noted
/// goes by itself.
void Ledger::charge_row(Link& link, std::span<Frame* const> frames, base::Nanoseconds begun, base::Nanoseconds now) {
    Frame& first = *frames.front();
    const bool alone = ours(link.rail);
    std::uint64_t bytes = 0;
    for (Frame* frame : frames) {
        frame->charged = true;
        bytes += frame->wire_bytes();
    }
    auto& pace = paces_[link.rail];
    pace.sent(first.wire_bytes(), begun, alone);
    if (frames.size() > 1) pace.sent(bytes - first.wire_bytes(), now, alone);
    node_.sent(link.rail, bytes, now);
    link.unacked_bytes += bytes;
    if (link.state != LinkState::live) return;  // it goes elsewhere soon
    if (noted(first)) [[unlikely]]
        return charge_noted(link, first, now);
    const auto count = static_cast<std::uint32_t>(frames.size());
    policy_.charge(peers_[link.peer].talk->candidates[link.place], bytes, count, now);
}

/// Also notes what is expected, for the report and the trace: before the policy is told.
void Ledger::charge_noted(const Link& link, Frame& frame, base::Nanoseconds now) {
    const auto& talk = *peers_[link.peer].talk;
    const auto& candidate = talk.candidates[link.place];
    const auto bytes = frame.wire_bytes();
    if (tracer_ != nullptr) tracer_->decided(link, frame, talk, now);
    if (frame.seq % frames_per_prediction == 0) frame.predicted = narrowed_ns(policy_.delivery(candidate, bytes, now));
    policy_.charge(candidate, bytes, now);
}

/// Link by link: what is known of a rail is looked at once for all that was given to it in a row.
void Ledger::charge_late() {
    for (std::size_t begin = 0, end = 0; begin < late_.size(); begin = end) {
        const Frame& first = *late_[begin];
        Link& link = links_.at(first.link);
        if (link.state == LinkState::live) refresh(*peers_[link.peer].talk, first.sent);
        end = begin + 1;
        const bool alone = noted(first);
        while (!alone && end < late_.size() && late_[end]->link == first.link && !noted(*late_[end])) ++end;
        charge_row(link, std::span(late_).subspan(begin, end - begin), first.sent, late_[end - 1]->sent);
    }
    late_.clear();
}

/// The first that is put off, and after it those that are noted.
void Ledger::follow(const Link& link, Conversation& talk, const Frame& frame, base::Nanoseconds now) noexcept {
    talk.followed = {.link = link.slot,
                     .seq = frame.seq,
                     .alone = talk.session.heard() == frame.seq && frame.wire_bytes() <= small_bytes && ours(link.rail),
                     .sent = now};
}

void Ledger::answered(Link& link, Conversation::Followed& followed, const FrameHeader& header,
                      base::Nanoseconds now) noexcept {
    followed.link = no_link;
    if (header.held >= held_longest) return;
    followed.answered = now;
    followed.held = header.held;
    if (followed.alone) link.echo.heard(now - followed.sent - header.held, now, busy_.time());
}

void Ledger::uncharge(Frame& frame, base::Nanoseconds now) noexcept {
    if (!std::exchange(frame.charged, false)) return;
    Link& link = links_.at(frame.link);
    assert(link.unacked_bytes >= frame.wire_bytes());
    link.unacked_bytes -= frame.wire_bytes();
    paces_[link.rail].lost(frame.wire_bytes());
    node_.left(link.rail, paces_[link.rail].backlog(), now);
}

// --- Acknowledgements ------------------------------------------------------------------------------------------------

void Ledger::acknowledged(Frame& frame, const Link& by, const FrameHeader& header, base::Nanoseconds now) {
    released_ |= std::uint64_t{1} << frame.rail;
    if (std::exchange(frame.charged, false)) {
        learn_from(by, header, frame, now);
    } else if (frame.link != no_link) {
        std::erase(late_, &frame);  // acknowledged before it can have arrived: the other side makes that up
    }
    if (frame.predicted != 0) [[unlikely]]
        compare(by, header, frame, now);
}

/// What the acknowledgement of `frame` says: a small one shows the latency of its link, large ones the rate of the rail.
void Ledger::learn_from(const Link& by, const FrameHeader& header, const Frame& frame, base::Nanoseconds now) {
    Link& link = links_.at(frame.link);
    auto& pace = paces_[link.rail];
    const auto bytes = frame.wire_bytes();
    assert(link.unacked_bytes >= bytes);
    link.unacked_bytes -= bytes;
    const bool small = bytes <= small_bytes;
    pace.delivered(bytes);
    if (link.state != LinkState::live) return;
    // How long an acknowledgement was kept back is known of the newest frame.
    const bool newest = frame.seq + 1 == header.ack && header.held < held_longest;
    if (frame.alone && newest && small && frame.link == by.slot) {
        link.echo.heard(now - frame.sent - header.held, now, busy_.time());
    }
    // An acknowledgement that came with data may have waited behind other data.
    if (newest && small && header.type == FrameType::ack && (header.flags & frame_flag::behind) == 0 &&
        pace.backlog() > 0) {
        const auto& candidate = peers_[link.peer].talk->candidates[link.place];
        policy_.left(candidate, pace.backlog(), now - header.held - 2 * candidate.cost.latency / sched::ticks_per_ns);
    }
    const std::uint32_t with = header.type == FrameType::ack ? 0 : header.aux;  // bytes that came back together with it
    const bool light = with <= small_bytes;
    // Bulk shows rates, and what is late of it is late by far more than a message would be.
    if (frame.alone && newest && !small && frame.piece_count == 0 && (light || frame.link == by.slot) &&
        (header.flags & frame_flag::behind) == 0)
        note_lag(link, by, with, frame, now - header.held);
    const auto passage = pace.take_passage();
    const auto* train = pace.backlog() == 0 ? &pace.train() : passage ? &*passage : nullptr;
    if (train == nullptr || train->bytes < large_bytes) return;
    if ((header.flags & frame_flag::behind) != 0) return;  // it is the peer that is late
    if (!light && frame.link != by.slot) return;           // the other rail may be the late one
    learn_from_train(link, *train, light ? 0 : with, now, newest ? std::optional(header.held) : std::nullopt);
}

/// `frame`, before which nothing was on its link, is acknowledged together with so many bytes that came back; it would have
/// been at `now`, had the peer not held the acknowledgement.
void Ledger::note_lag(Link& link, const Link& by, std::uint32_t with, const Frame& frame,
                      base::Nanoseconds now) noexcept {
    const auto& train = paces_[link.rail].train();
    const bool lone = train.undisturbed && train.begin == frame.sent && train.bytes == frame.wire_bytes();
    if (!lone) return;
    const auto& talk = *peers_[link.peer].talk;
    const auto way_back = latency(by, now) + sched::times(with, talk.candidates[by.place].cost.slope);
    const auto took = sched::to_ticks(now - frame.sent) - way_back;
    const auto predicted =
        latency(link, now) + sched::times(frame.wire_bytes(), talk.candidates[link.place].cost.slope);
    link.lag.arrived(took, predicted, busy_.time());
}

/// As measured by traffic, or by the model.
sched::Ticks Ledger::latency(const Link& link, base::Nanoseconds now) const noexcept {
    const auto thought = peers_[link.peer].talk->costs[link.place].latency;
    const auto heard = link.echo.latency(now, busy_.time(), thought);
    return heard > 0 ? heard : thought;
}

/// All that was on the rail of this link, the last one of which it carried, is acknowledged, together with so many bytes that
/// came back over it; the acknowledgement was `held` by the peer, if that is known. On a rail that is only tried again it is
/// enough to know that it was not held for long.
void Ledger::learn_from_train(const Link& link, const sched::Train& train, std::uint32_t with, base::Nanoseconds now,
                              std::optional<base::Nanoseconds> held) {
    auto& pace = paces_[link.rail];
    if (!train.undisturbed) return;
    const auto& talk = *peers_[link.peer].talk;
    const auto ways = 2 * latency(link, now) + sched::times(with, talk.candidates[link.place].cost.slope);
    const auto service = now - train.begin - held.value_or(0) - ways / sched::ticks_per_ns;
    const bool together = (train.end - train.begin) * 8 <= service;
    const bool in_time = (now - looks_.looked) * 8 <= service;  // we had just looked, and it was not there
    const bool known = held || acknowledged_within * 8 <= service || pace.aged(busy_.time());
    if (together && in_time && known)
        pace.lone(train.bytes, service, talk.candidates[link.place].cost.per_byte, now, busy_.time());
}

/// What was predicted of the frame, and what came of it. That is known of the newest one of an acknowledgement; the others may
/// have arrived at any time since the acknowledgement before.
void Ledger::compare(const Link& by, const FrameHeader& header, const Frame& frame, base::Nanoseconds now) noexcept {
    auto& known = peers_[by.peer];
    const auto& followed = known.talk->followed;
    auto held = header.held;
    if (followed.answered > 0 && followed.seq == frame.seq) {  // it was heard before
        now = followed.answered;
        held = followed.held;
    } else if (frame.seq + 1 != header.ack || held >= held_longest) {
        return;
    }
    const auto way_back = known.talk->candidates[by.place].cost.latency / sched::ticks_per_ns;
    const auto real = std::max<base::Nanoseconds>(now - frame.sent - held - way_back, 0);
    const base::Nanoseconds predicted = frame.predicted;
    auto& traffic = known.traffic[frame.rail];
    ++traffic.timed_frames;
    traffic.predicted_ns += static_cast<std::uint64_t>(predicted);
    traffic.real_ns += static_cast<std::uint64_t>(real);
    traffic.error_ns += static_cast<std::uint64_t>(std::abs(real - predicted));
}

// --- For who chooses -------------------------------------------------------------------------------------------------

void Ledger::refresh(Conversation& talk, base::Nanoseconds now) noexcept {
    node_.look(now);
    sched::Candidate* trusted = nullptr;
    auto least = std::numeric_limits<sched::Ticks>::max();
    for (std::size_t i = 0; i < talk.links.size(); ++i) {
        auto& candidate = talk.candidates[i];
        const auto& pace = paces_[candidate.rail];
        sched::look_at(candidate, talk.costs[i], pace, node_, looks_.looked);
        const Link& link = links_.at(talk.links[i]);
        candidate.joins = false;  // nothing of ours is what others handed over
        candidate.recent = talk.follows && link.slot == talk.last_link;
        pace.correct(candidate.cost, now, busy_.time());
        const auto heard = link.echo.latency(now, busy_.time(), talk.costs[i].latency);
        if (heard > 0) candidate.cost.latency = heard;
        if (heard == 0 && candidate.recent) trusted = &candidate;
        if (const auto arrived = node_.take_arrivals(candidate.rail); arrived > 0)
            policy_.charge(candidate, arrived, now);
        candidate.joins = !link.outbox.empty();
        candidate.behind = talk.behind_there;
        least = std::min(least, candidate.cost.latency);
    }
    // The peer chose this link, and knows what we do not: it is worth trying.
    if (trusted != nullptr) trusted->cost.latency = least;
    for (std::size_t i = 0; i < talk.links.size(); ++i) {
        talk.candidates[i].cost.latency += links_.at(talk.links[i]).lag.least(busy_.time());
    }
}

}  // namespace railmux::rails

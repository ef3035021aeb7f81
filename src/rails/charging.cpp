// RailManager: what is on the rails, for who chooses: charged when it is handed over, settled when it is acknowledged, and
// what that says of their rates.
#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <limits>
#include <utility>

#include "rails/rail_manager.hpp"

namespace railmux::rails {

namespace {

/// At most 4 s, and never 0, which means that nothing was predicted.
std::uint32_t narrowed_ns(sched::Ticks ticks) noexcept {
    constexpr sched::Ticks most = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::clamp<sched::Ticks>(ticks / sched::ticks_per_ns, 1, most));
}

}  // namespace

/// Notes what is handed to a link and will be acknowledged.
void RailManager::charge(Link& link, Frame& frame, base::Nanoseconds now) {
    Frame* const one = &frame;
    charge_row(link, {&one, 1}, now, now);
}

/// The same of frames that went to the link in a row. All but the first count as given to it with the last; one that is noted
/// goes by itself.
void RailManager::charge_row(Link& link, std::span<Frame* const> frames, base::Nanoseconds begun,
                             base::Nanoseconds now) {
    Frame& first = *frames.front();
    const bool ours = node_.others(link.rail).backlog <= small_bytes;
    first.alone = ours && link.unacked_bytes == 0;
    std::uint64_t bytes = 0;
    for (Frame* frame : frames) {
        frame->charged = true;
        bytes += frame->wire_bytes();
    }
    auto& pace = paces_[link.rail];
    pace.sent(first.wire_bytes(), begun, ours);
    if (frames.size() > 1) pace.sent(bytes - first.wire_bytes(), now, ours);
    node_.sent(link.rail, bytes, now);
    link.unacked_bytes += bytes;
    if (link.state != LinkState::live) return;  // it goes elsewhere soon
    if (noted(first)) [[unlikely]]
        return charge_noted(link, first, now);
    const auto count = static_cast<std::uint32_t>(frames.size());
    policy_.charge(peers_[link.peer].talk->candidates[link.place], bytes, count, now);
}

/// Also notes what is expected, for the report and the trace: before the policy is told.
void RailManager::charge_noted(const Link& link, Frame& frame, base::Nanoseconds now) {
    const auto& talk = *peers_[link.peer].talk;
    const auto& candidate = talk.candidates[link.place];
    const auto bytes = frame.wire_bytes();
    if (tracer_ != nullptr) tracer_->decided(link, frame, talk, now);
    if (frame.seq % frames_per_prediction == 0) frame.predicted = narrowed_ns(policy_.delivery(candidate, bytes, now));
    policy_.charge(candidate, bytes, now);
}

/// Link by link: what is known of a rail is looked at once for all that was given to it in a row.
void RailManager::charge_late() {
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

/// Does what was put off. True if there was something.
bool RailManager::catch_up() {
    if (heard_.empty() && late_.empty()) return false;
    const bool any = take_heard();
    charge_late();
    return any;
}

/// What was handed to a link will not be acknowledged over it.
void RailManager::uncharge(Frame& frame) noexcept {
    if (!std::exchange(frame.charged, false)) return;
    Link& link = links_.at(frame.link);
    assert(link.unacked_bytes >= frame.wire_bytes());
    link.unacked_bytes -= frame.wire_bytes();
    paces_[link.rail].lost(frame.wire_bytes());
    node_.left(link.rail, paces_[link.rail].backlog(), now_);
}

void RailManager::settle(base::Nanoseconds now) noexcept {
    if (released_ != 0) sched::settle(paces_, std::exchange(released_, 0), node_, busy_, now, now - quiet_);
}

/// What the acknowledgement of `frame` says: a small one shows the latency of its link, large ones the rate of the rail.
void RailManager::learn_from(const Link& acknowledged_by, const FrameHeader& header, const Frame& frame,
                             base::Nanoseconds now) {
    Link& link = links_.at(frame.link);
    auto& pace = paces_[link.rail];
    const auto bytes = frame.wire_bytes();
    assert(link.unacked_bytes >= bytes);
    link.unacked_bytes -= bytes;
    const bool small = bytes <= small_bytes;
    pace.delivered(bytes, !(small && (header.flags & frame_flag::behind) != 0));
    if (link.state != LinkState::live) return;
    // How long an acknowledgement was kept back is known of the newest frame.
    const bool newest = frame.seq + 1 == header.ack && header.held < held_longest;
    if (frame.alone && newest && small && frame.link == acknowledged_by.slot) {
        link.echo.heard(now - frame.sent - header.held, now);
    }
    // An acknowledgement that came with data may have waited behind other data.
    if (newest && small && header.type == FrameType::ack && (header.flags & frame_flag::behind) == 0 &&
        pace.backlog() > 0) {
        const auto& candidate = peers_[link.peer].talk->candidates[link.place];
        policy_.left(candidate, pace.backlog(), now - header.held - 2 * candidate.cost.latency / sched::ticks_per_ns);
    }
    const auto passage = pace.take_passage();
    const auto* train = pace.backlog() == 0 ? &pace.train() : passage ? &*passage : nullptr;
    if (train == nullptr || train->bytes < large_bytes) return;
    if ((header.flags & frame_flag::behind) != 0) return;  // it is the peer that is late
    const bool light = header.type == FrameType::ack || header.aux <= small_bytes;
    if (!light && frame.link != acknowledged_by.slot) return;  // the other rail may be the late one
    learn_from_train(link, *train, light ? 0 : header.aux, now, newest ? std::optional(header.held) : std::nullopt);
}

/// All that was on the rail of this link, the last one of which it carried, is acknowledged, together with so many bytes that
/// came back over it; the acknowledgement was `held` by the peer, if that is known. On a rail that is only tried again it is
/// enough to know that it was not held for long.
void RailManager::learn_from_train(const Link& link, const sched::Train& train, std::uint32_t with,
                                   base::Nanoseconds now, std::optional<base::Nanoseconds> held) {
    auto& pace = paces_[link.rail];
    if (!train.undisturbed) return;
    const auto& talk = *peers_[link.peer].talk;
    auto latency = link.echo.latency(now);
    if (latency == 0) latency = talk.costs[link.place].latency;
    const auto ways = 2 * latency + sched::times(with, talk.candidates[link.place].cost.slope);
    const auto service = now - train.begin - held.value_or(0) - ways / sched::ticks_per_ns;
    const bool together = (train.end - train.begin) * 8 <= service;
    const bool in_time = (now - looked_) * 8 <= service;  // we had just looked, and it was not there
    const bool known = held || acknowledged_within * 8 <= service || pace.aged(busy_.time());
    if (together && in_time && known)
        pace.lone(train.bytes, service, talk.candidates[link.place].cost.per_byte, now, busy_.time());
}

/// What was predicted of the frame, and what came of it. That is known of the newest one of an acknowledgement; the others may
/// have arrived at any time since the acknowledgement before.
void RailManager::compare(const Link& acknowledged_by, const FrameHeader& header, const Frame& frame,
                          base::Nanoseconds now) noexcept {
    if (frame.seq + 1 != header.ack || header.held >= held_longest) return;
    auto& known = peers_[acknowledged_by.peer];
    const auto way_back = known.talk->candidates[acknowledged_by.place].cost.latency / sched::ticks_per_ns;
    const auto real = std::max<base::Nanoseconds>(now - frame.sent - header.held - way_back, 0);
    const base::Nanoseconds predicted = frame.predicted;
    auto& traffic = known.traffic[frame.rail];
    ++traffic.timed_frames;
    traffic.predicted_ns += static_cast<std::uint64_t>(predicted);
    traffic.real_ns += static_cast<std::uint64_t>(real);
    traffic.error_ns += static_cast<std::uint64_t>(std::abs(real - predicted));
}

/// What the policy is to know of the links now.
void RailManager::refresh(Conversation& talk, base::Nanoseconds now) noexcept {
    node_.look(now);
    sched::Candidate* trusted = nullptr;
    auto least = std::numeric_limits<sched::Ticks>::max();
    for (std::size_t i = 0; i < talk.links.size(); ++i) {
        auto& candidate = talk.candidates[i];
        const auto& pace = paces_[candidate.rail];
        sched::look_at(candidate, talk.costs[i], pace, node_, looked_);
        const Link& link = links_.at(talk.links[i]);
        candidate.joins = !link.outbox.empty();
        candidate.recent = talk.follows && link.slot == talk.last_link;
        pace.correct(candidate.cost, now, busy_.time());
        const auto heard = link.echo.latency(now);
        if (heard > 0) candidate.cost.latency = heard;
        if (heard == 0 && candidate.recent) trusted = &candidate;
        if (const auto arrived = node_.take_arrivals(candidate.rail); arrived > 0)
            policy_.charge(candidate, arrived, now);
        least = std::min(least, candidate.cost.latency);
    }
    // The peer chose this link, and knows what we do not: it is worth trying.
    if (trusted != nullptr) trusted->cost.latency = least;
}

}  // namespace railmux::rails

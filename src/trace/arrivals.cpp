#include "trace/arrivals.hpp"

#include <algorithm>

namespace railmux::trace {

namespace {
// A delivery is timed where the doubt is at most this part of it.
constexpr base::Nanoseconds doubt_part = 4;
}  // namespace

void Arrivals::decided(std::uint32_t seq, std::uint32_t place, const Decision& decision) {
    auto& peer = peers_[decision.peer];
    close(peer);             // what was acknowledged before this was sent says nothing of it
    peer.open[seq] = place;  // sent again: the last try counts
    peer.sent.push_back({seq, place});
}

void Arrivals::acknowledged(const AcknowledgedRecord& record, base::Nanoseconds time) {
    auto& peer = peers_[record.peer];
    const auto found = peer.open.find(record.seq);
    if (found == peer.open.end()) return;
    const auto arrived = std::max<base::Nanoseconds>(time - record.back_ns, 0);
    if (time != peer.time || arrived != peer.arrived) close(peer);
    peer.time = time;
    peer.arrived = arrived;
    peer.flags = record.flags;
    peer.batch.push_back(found->second);
    peer.open.erase(found);
}

void Arrivals::end() {
    for (auto& [number, peer] : peers_) close(peer);
}

/// Whether something that is not acknowledged was on its way when the acknowledgement came: a file may tell of several
/// decisions, and then of what came of them.
bool Arrivals::any_open(Peer& peer) const {
    const auto over = [&](const Peer::Sent& sent) {
        const auto open = peer.open.find(sent.seq);
        return open == peer.open.end() || open->second != sent.place;
    };
    while (!peer.sent.empty() && over(peer.sent.front())) peer.sent.pop_front();
    return !peer.sent.empty() && trace_.decisions[peer.sent.front().place].time <= peer.time;
}

void Arrivals::close(Peer& peer) {
    if (peer.batch.empty()) return;
    const auto link_of = [&](std::uint32_t place) { return trace_.chosen(trace_.decisions[place]).link; };
    const auto rail_of = [&](std::uint32_t place) { return trace_.links[link_of(place)].rail; };
    const bool held_known = (peer.flags & acknowledged_flag::held_known) != 0;
    const bool complete = (peer.flags & acknowledged_flag::complete) != 0;
    // On one rail the last frame arrived last; and nothing newer that is not acknowledged can have come in since.
    const bool one_rail = std::all_of(peer.batch.begin(), peer.batch.end(),
                                      [&](auto place) { return rail_of(place) == rail_of(peer.batch[0]); });
    const bool last_is_exact = one_rail && (complete || !any_open(peer));
    for (std::size_t i = 0; i < peer.batch.size(); ++i) {
        auto& decision = trace_.decisions[peer.batch[i]];
        decision.acknowledged = true;
        decision.delivered = std::max(peer.arrived, decision.time);
        const auto doubt = decision.delivered - std::max(peer.told, decision.time);
        const bool exact = last_is_exact && i + 1 == peer.batch.size();
        decision.timed = held_known && (exact || doubt * doubt_part <= decision.delivered - decision.time);
    }
    if (complete && held_known) peer.told = peer.arrived;
    peer.batch.clear();
}

}  // namespace railmux::trace

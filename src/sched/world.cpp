#include "sched/world.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace railmux::sched {

namespace {

constexpr auto never = std::numeric_limits<base::Nanoseconds>::max();

/// A rail that delivers as the cost says: latency + s slope from the start, and busy for gap + s per_byte.
RailSpec behaving_as(const Cost& cost) {
    const auto ns = [](Ticks ticks) { return static_cast<double>(ticks) / ticks_per_ns; };
    return {.latency_ns = ns(cost.latency - cost.gap),
            .gap_ns = ns(cost.gap),
            .per_byte_ns = ns(cost.per_byte),
            .overhead_per_byte_ns = ns(cost.slope - cost.per_byte)};
}

}  // namespace

World::World(Policy& policy, const std::vector<RailSpec>& rails, const std::vector<std::vector<std::uint32_t>>& reach)
    : policy_(policy), learns_(true), paces_(rails.size()), claims_(rails.size(), 0) {
    for (const auto& spec : rails) wires_.emplace_back(spec);
    for (const auto& way : reach) {
        auto& peer = peers_.emplace_back();
        for (const auto rail : way) {
            const auto& spec = rails[rail];
            const auto speed = static_cast<std::uint64_t>(8e9 / spec.per_byte_ns);
            add_way(peer, {.rail = rail, .speed_bps = speed, .cost = spec.cost()}, spec);
        }
    }
}

World::World(Policy& policy, std::size_t rails, const std::vector<std::vector<Way>>& ways)
    : policy_(policy), learns_(false), wires_(rails, Wire({})), paces_(rails), claims_(rails, 0) {
    for (const auto& peer_ways : ways) {
        auto& peer = peers_.emplace_back();
        for (const auto& way : peer_ways) add_way(peer, way, behaving_as(way.cost));
    }
}

void World::add_way(Peer& peer, const Way& way, const RailSpec& spec) {
    peer.candidates.push_back({.rail = way.rail, .speed_bps = way.speed_bps, .cost = way.cost});
    peer.specs.push_back(spec);
    peer.costs.push_back(way.cost);
    peer.claims.push_back(0);
    peer.unacked.push_back(0);
}

base::Nanoseconds World::run(std::span<const Message> messages, std::size_t window) {
    std::size_t next = 0;
    const auto may_begin = [&] { return next < messages.size() && under_way_ < window; };
    while (true) {
        while (may_begin() && messages[next].at <= now_) begin(messages[next++]);
        feed_all();
        auto event = acks_.empty() ? never : acks_.top().at;
        if (may_begin()) event = std::min(event, messages[next].at);
        if (event == never) break;
        now_ = event;
        if (acks_.empty() || acks_.top().at != now_) continue;
        for (; !acks_.empty() && acks_.top().at == now_; acks_.pop()) acknowledged(acks_.top());
        if (now_ - acked_ < pause) busy_ += now_ - acked_;
        acked_ = now_;
        for (auto& pace : paces_) pace.settle(now_, busy_);
    }
    if (next < messages.size() || under_way_ > 0) return never;  // a policy that leaves messages lying
    return arrivals_.empty() ? 0 : *std::max_element(arrivals_.begin(), arrivals_.end());
}

void World::begin(const Message& message) {
    const auto id = left_.size();
    left_.push_back(message.bytes);
    arrivals_.push_back(0);
    ++under_way_;
    auto& peer = peers_[message.peer];
    for (std::size_t i = 0; i < message.costs.size(); ++i) {
        peer.costs[i] = message.costs[i];
        peer.specs[i] = behaving_as(message.costs[i]);
    }
    const bool divisible = message.bytes >= 2 * smallest_share && !message.whole;
    if (divisible && policy_.replans()) {
        peer.bulk.push_back({id, message.bytes});
        return;
    }
    refresh(peer);
    if (!divisible) {
        const auto place = policy_.choose(peer.candidates, message.bytes, now_);
        hand_over(message.peer, place, message.bytes, id);
        return;
    }
    std::vector<std::uint64_t> shares(peer.candidates.size(), 0);
    policy_.split(peer.candidates, message.bytes, now_, shares);
    for (std::size_t i = 0; i < shares.size(); ++i) {
        if (shares[i] > 0) hand_over(message.peer, i, shares[i], id);
    }
}

void World::hand_over(std::size_t number, std::size_t place, std::uint64_t bytes, std::size_t message) {
    auto& peer = peers_[number];
    const auto& candidate = peer.candidates[place];
    auto& wire = wires_[candidate.rail];
    wire.become(peer.specs[place]);
    const auto arrival = wire.deliver(bytes, now_);
    arrivals_[message] = std::max(arrivals_[message], arrival);
    acks_.push({wire.acknowledge(arrival), number, place, bytes, message});
    paces_[candidate.rail].sent(bytes, now_);
    peer.unacked[place] += bytes;
    policy_.charge(candidate, bytes, now_);
}

void World::acknowledged(const Ack& ack) {
    auto& peer = peers_[ack.peer];
    peer.unacked[ack.place] -= ack.bytes;
    paces_[peer.candidates[ack.place].rail].delivered(ack.bytes);
    left_[ack.message] -= ack.bytes;
    if (left_[ack.message] == 0) --under_way_;
}

void World::refresh(Peer& peer) {
    for (std::size_t i = 0; i < peer.candidates.size(); ++i) {
        auto& candidate = peer.candidates[i];
        const auto& pace = paces_[candidate.rail];
        candidate.cost = peer.costs[i];
        candidate.backlog = pace.backlog();
        candidate.silent = pace.silent(now_);
        const auto measured = learns_ ? pace.per_byte(busy_, candidate.cost.per_byte) : 0;
        if (measured > 0) candidate.cost.slope = candidate.cost.per_byte = measured;
        if (learns_) candidate.cost.gap = std::min(candidate.cost.gap, pace.gap_limit(now_));
    }
}

void World::replan(Peer& peer) {
    drop_claims(peer);
    refresh(peer);
    auto candidates = peer.candidates;
    for (auto& candidate : candidates) candidate.claimed = claims_[candidate.rail];
    std::uint64_t left = 0;
    for (const auto& bulk : peer.bulk) left += bulk.bytes;
    policy_.split(candidates, left, now_, peer.claims);
    for (std::size_t i = 0; i < candidates.size(); ++i) claims_[candidates[i].rail] += peer.claims[i];
}

void World::drop_claims(Peer& peer) {
    for (std::size_t i = 0; i < peer.claims.size(); ++i)
        claims_[peer.candidates[i].rail] -= std::exchange(peer.claims[i], 0);
}

std::uint64_t World::piece_for(Peer& peer, std::size_t place) {
    replan(peer);
    const auto& candidate = peer.candidates[place];
    const auto claim = peer.claims[place];
    const auto span = to_ticks(horizon) + 4 * candidate.cost.latency;
    const auto enough = std::min<std::uint64_t>(static_cast<std::uint64_t>(span / candidate.cost.per_byte),
                                                paces_[candidate.rail].allowance(busy_));
    if (claim == 0 || peer.unacked[place] >= std::max(enough, 2 * smallest_share)) return 0;
    const auto piece = static_cast<std::uint64_t>(to_ticks(piece_time) / candidate.cost.per_byte);
    return std::min({claim, std::clamp(piece, smallest_share, fragment), peer.bulk.front().bytes});
}

void World::feed_all() {
    ++next_fed_;
    for (std::size_t n = 0; n < peers_.size(); ++n) {
        const auto number = (next_fed_ + n) % peers_.size();
        auto& peer = peers_[number];
        for (std::size_t place = 0; place < peer.candidates.size(); ++place) {
            while (!peer.bulk.empty()) {
                const auto bytes = piece_for(peer, place);
                if (bytes == 0) break;
                const auto message = peer.bulk.front().message;
                peer.bulk.front().bytes -= bytes;
                if (peer.bulk.front().bytes == 0) peer.bulk.pop_front();
                hand_over(number, place, bytes, message);
            }
        }
        if (peer.bulk.empty()) drop_claims(peer);
    }
}

}  // namespace railmux::sched

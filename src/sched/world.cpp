#include "sched/world.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace railmux::sched {

namespace {

/// A rail that delivers as the cost says: latency + s slope from the start, and busy for gap + s per_byte.
RailSpec behaving_as(const Cost& cost) {
    return {.latency_ns = to_ns(cost.latency - cost.gap),
            .gap_ns = to_ns(cost.gap),
            .per_byte_ns = to_ns(cost.per_byte),
            .overhead_per_byte_ns = to_ns(cost.slope - cost.per_byte)};
}

}  // namespace

World::World(Policy& policy, std::span<Wire> rails)
    : policy_(policy),
      wires_(rails),
      answers_(rails.begin(), rails.end()),
      paces_(rails.size()),
      node_(rails.size()),
      claims_(rails.size()) {
    assert(rails.size() <= 64);  // acknowledged_
}

World::World(Policy& policy, std::span<Wire> rails, const std::vector<std::vector<std::uint32_t>>& reach)
    : World(policy, rails) {
    learns_ = true;
    for (const auto& way : reach) {
        auto& peer = peers_.emplace_back();
        for (const auto rail : way) {
            const auto& spec = rails[rail].spec();
            const auto speed = static_cast<std::uint64_t>(8e9 / spec.per_byte_ns);
            add_way(peer, {.rail = rail, .speed_bps = speed, .cost = spec.cost()}, spec);
        }
    }
}

World::World(Policy& policy, std::span<Wire> rails, const std::vector<std::vector<Way>>& ways) : World(policy, rails) {
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

bool World::join(LoadTable& table, std::uint64_t owner) {
    node_.join(table, owner, [](std::uint64_t) noexcept { return true; });
    bool all = true;
    for (std::uint32_t rail = 0; rail < wires_.size(); ++rail) all = node_.share(rail, rail + 1) && all;
    return all;
}

base::Nanoseconds World::run(std::span<const Message> messages, std::size_t window) {
    start(messages, window);
    while (next_event() != never) step();
    return finished();
}

void World::start(std::span<const Message> messages, std::size_t window) {
    messages_ = messages;
    window_ = window;
    next_ = 0;
    left_.clear();
    arrivals_.clear();
    fill();
}

base::Nanoseconds World::next_event() const {
    const auto ack = acks_.empty() ? never : acks_.top().at;
    return may_begin() ? std::min(ack, std::max(now_, messages_[next_].at)) : ack;
}

void World::step() {
    now_ = next_event();
    if (!acks_.empty() && acks_.top().at == now_) {
        for (; !acks_.empty() && acks_.top().at == now_; acks_.pop()) acknowledged(acks_.top());
        settle();
    }
    fill();
}

base::Nanoseconds World::finished() const {
    if (next_ < messages_.size() || under_way_ > 0) return never;
    return arrivals_.empty() ? 0 : *std::max_element(arrivals_.begin(), arrivals_.end());
}

double World::mean_delivery_ns() const {
    double sum = 0;
    for (std::size_t i = 0; i < arrivals_.size(); ++i) sum += static_cast<double>(arrivals_[i] - messages_[i].at);
    return sum / static_cast<double>(arrivals_.size());
}

double World::per_byte_ns(std::size_t rail) const { return to_ns(paces_[rail].per_byte()); }
double World::own_per_byte_ns(std::size_t rail) const { return to_ns(paces_[rail].own_per_byte()); }

void World::fill() {
    while (may_begin() && messages_[next_].at <= now_) begin(messages_[next_++]);
    feed_all();
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
    auto& answers = answers_[candidate.rail];
    if (!learns_) {  // links that differ may share the rail
        wire.become(peer.specs[place]);
        answers.become(peer.specs[place]);
    }
    const auto arrival = wire.deliver(bytes, now_);
    arrivals_[message] = std::max(arrivals_[message], arrival);
    acks_.push({answers.acknowledge(arrival), number, place, bytes, message, arrival});
    paces_[candidate.rail].sent(bytes, now_);
    node_.sent(candidate.rail, bytes, now_);
    peer.unacked[place] += bytes;
    policy_.charge(candidate, bytes, now_);
}

void World::acknowledged(const Ack& ack) {
    auto& peer = peers_[ack.peer];
    peer.unacked[ack.place] -= ack.bytes;
    const auto rail = peer.candidates[ack.place].rail;
    paces_[rail].delivered(ack.bytes);
    learn_from_trial(ack);
    acknowledged_ |= std::uint64_t{1} << rail;
    left_[ack.message] -= ack.bytes;
    if (left_[ack.message] == 0) --under_way_;
}

/// A rail that is only tried is timed by the peer's clock, as Ledger::timed does.
void World::learn_from_trial(const Ack& ack) {
    const auto& candidate = peers_[ack.peer].candidates[ack.place];
    auto& pace = paces_[candidate.rail];
    const auto& train = pace.train();
    if (!learns_ || !pace.tried(busy_.time()) || pace.backlog() > 0 || train.bytes < Pace::timed_bytes) return;
    if (node_.others(candidate.rail).backlog > 0) return;
    const auto service = ack.arrival - train.begin - candidate.cost.latency / ticks_per_ns;
    if (service > 0) pace.lone({train.bytes, train.messages, service}, candidate.cost.per_byte, now_, busy_.time());
}

/// Everything that was acknowledged at this moment is known.
void World::settle() { sched::settle(paces_, std::exchange(acknowledged_, 0), node_, busy_, now_); }

void World::refresh(Peer& peer) {
    node_.look(now_, paces_);
    for (std::size_t i = 0; i < peer.candidates.size(); ++i) {
        auto& candidate = peer.candidates[i];
        const auto& pace = paces_[candidate.rail];
        look_at(candidate, peer.costs[i], pace, node_, now_);
        if (learns_) candidate.bounded = pace.correct(candidate.cost, now_, busy_.time());
        const auto arrived = node_.take_arrivals(candidate.rail);
        if (arrived > 0) policy_.charge(candidate, arrived, now_);
    }
    if (!learns_) return;
    hope(peer.candidates, paces_, busy_.time());
    even_out(peer.candidates, paces_, busy_.time());
}

/// Whether there is more to bring than was planned.
bool World::replan(Peer& peer, bool again) {
    const auto planned = claims_.drop(peer.candidates, peer.claims);
    if (peer.bulk.empty()) return false;
    if (!again) refresh(peer);
    std::uint64_t left = 0;
    for (const auto& bulk : peer.bulk) left += bulk.bytes;
    claims_.plan(policy_, peer.candidates, left, now_, peer.claims);
    return left > planned;
}

std::uint64_t World::piece_for(const Peer& peer, std::size_t place) const {
    const auto& candidate = peer.candidates[place];
    const auto& pace = paces_[candidate.rail];
    const auto claim = peer.claims[place];
    const auto span = to_ticks(Fill::least) + 4 * candidate.cost.latency;
    const auto per_byte = std::max(candidate.cost.per_byte, learns_ ? pace.own_per_byte() : 0);
    const auto enough =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(span / per_byte), pace.allowance(busy_.time()));
    if (claim == 0 || peer.unacked[place] >= std::max(enough, 2 * smallest_share)) return 0;
    const auto piece = static_cast<std::uint64_t>(to_ticks(piece_time) / candidate.cost.per_byte);
    const auto allowed = std::max(pace.allowance(busy_.time()), smallest_share);
    return std::min({claim, std::clamp(piece, smallest_share, fragment), allowed, peer.bulk.front().bytes});
}

void World::feed_all() {
    ++next_fed_;
    plan_in_turn(peers_.size(), next_fed_, [&](std::size_t i, bool again) { return replan(peers_[i], again); });
    for (std::size_t n = 0; n < peers_.size(); ++n) feed((next_fed_ + n) % peers_.size());
}

void World::feed(std::size_t number) {
    auto& peer = peers_[number];
    for (std::size_t place = 0; place < peer.candidates.size(); ++place) {
        while (!peer.bulk.empty()) {
            const auto bytes = piece_for(peer, place);
            if (bytes == 0) break;
            const auto message = peer.bulk.front().message;
            peer.bulk.front().bytes -= bytes;
            if (peer.bulk.front().bytes == 0) peer.bulk.pop_front();
            auto& candidate = peer.candidates[place];
            claims_.given(candidate.rail, peer.claims[place], bytes);
            look_at_backlog(candidate, paces_[candidate.rail], node_, now_);
            hand_over(number, place, bytes, message);
        }
    }
}

}  // namespace railmux::sched

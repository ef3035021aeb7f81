// A sender with several peers over the rails of sched_world.hpp. It calls the policy as src/rails does: small messages by
// choose, large ones planned anew at each acknowledgement, in pieces, with claims across peers. Several senders may share
// the rails, each a process of its own with its own peers, and see each other's load or not.
//
// Threads: one thread.
// Lifetime: the policy outlives it, and so do rails and a table that it shares with others.
#pragma once

#include <limits>
#include <memory>
#include <queue>
#include <random>
#include <vector>

#include "sched/node_load.hpp"
#include "sched_world.hpp"

namespace railmux::sched::test {

struct Message {
    std::size_t peer = 0;
    std::uint64_t bytes = 0;
    base::Nanoseconds at = 0;  // not before
};

class Sender {
public:
    /// `reach`: for each peer the rails that lead to it.
    Sender(Policy& policy, const std::vector<RailSpec>& rails, const std::vector<std::vector<std::uint32_t>>& reach)
        : Sender(policy, wires_of(rails), reach) {}
    Sender(Policy& policy, std::shared_ptr<std::vector<Wire>> wires,
           const std::vector<std::vector<std::uint32_t>>& reach)
        : policy_(policy),
          wires_(std::move(wires)),
          answers_(*wires_),
          paces_(wires_->size()),
          node_(wires_->size()),
          claims_(wires_->size(), 0) {
        for (const auto& way : reach) {
            auto& peer = peers_.emplace_back();
            for (const auto rail : way) {
                const auto& spec = (*wires_)[rail].spec();
                const auto speed = static_cast<std::uint64_t>(8e9 / spec.per_byte_ns);
                peer.candidates.push_back({.rail = rail, .speed_bps = speed, .cost = spec.cost()});
            }
            peer.claims.assign(way.size(), 0);
            peer.unacked.assign(way.size(), 0);
        }
    }
    [[nodiscard]] static std::shared_ptr<std::vector<Wire>> wires_of(const std::vector<RailSpec>& rails) {
        return std::make_shared<std::vector<Wire>>(rails.begin(), rails.end());
    }

    /// From now on it sees the load of the others in the table, and they see its own.
    bool join(LoadTable& table, std::uint64_t owner) {
        node_.join(table, owner, [](std::uint64_t) noexcept { return true; });
        bool all = true;
        for (std::uint32_t rail = 0; rail < wires_->size(); ++rail) all = node_.share(rail, rail + 1) && all;
        return all;
    }

    /// Sends them in order, at most `window` at a time; returns when the last one has arrived.
    base::Nanoseconds run(const std::vector<Message>& messages, std::size_t window) {
        start(messages, window);
        while (next_event() != never) step();
        return finished();
    }

    static constexpr auto never = std::numeric_limits<base::Nanoseconds>::max();
    /// The same, step by step.
    void start(const std::vector<Message>& messages, std::size_t window) {
        messages_ = messages;
        window_ = window;
        next_ = 0;
        left_.clear();
        arrived_.clear();
        fill();
    }
    [[nodiscard]] base::Nanoseconds next_event() const {
        const auto ack = acks_.empty() ? never : acks_.top().at;
        const bool more = next_ < messages_.size() && under_way_ < window_;
        return more ? std::min(ack, std::max(now_, messages_[next_].at)) : ack;
    }
    void step() {
        now_ = next_event();
        for (; !acks_.empty() && acks_.top().at == now_; acks_.pop()) acknowledged(acks_.top());
        node_.look(now_);
        for (std::uint32_t rail = 0; rail < paces_.size(); ++rail) {
            if (!paces_[rail].unsettled()) continue;
            paces_[rail].settle(now_, now_, node_.others(rail));
            node_.left(rail, paces_[rail].backlog(), now_);
        }
        fill();
    }
    [[nodiscard]] base::Nanoseconds finished() const {
        return next_ == messages_.size() && under_way_ == 0 ? finished_ : never;
    }
    /// From when it could be sent until all of it was there, on average.
    [[nodiscard]] double mean_delivery_ns() const {
        double sum = 0;
        for (std::size_t i = 0; i < arrived_.size(); ++i) sum += static_cast<double>(arrived_[i] - messages_[i].at);
        return sum / static_cast<double>(arrived_.size());
    }
    [[nodiscard]] double per_byte_ns(std::size_t rail) const {
        return static_cast<double>(paces_[rail].per_byte()) / ticks_per_ns;
    }
    [[nodiscard]] double own_per_byte_ns(std::size_t rail) const {
        return static_cast<double>(paces_[rail].own_per_byte()) / ticks_per_ns;
    }

private:
    // As in src/rails/bulk.cpp.
    static constexpr std::uint64_t smallest_share = 16 * 1024;
    static constexpr std::uint64_t fragment = 256 * 1024;
    static constexpr base::Nanoseconds horizon = base::millisecond;
    static constexpr base::Nanoseconds piece_time = base::millisecond / 4;

    struct Ack {
        base::Nanoseconds at;
        std::size_t peer;
        std::size_t place;
        std::uint64_t bytes;
        std::size_t message;
        bool operator<(const Ack& other) const { return at > other.at; }
    };
    struct Bulk {
        std::size_t message;
        std::uint64_t bytes;
    };
    struct Peer {
        std::vector<Candidate> candidates;
        std::vector<std::uint64_t> claims;
        std::vector<std::uint64_t> unacked;
        std::deque<Bulk> bulk;
    };

    void fill() {
        for (; next_ < messages_.size() && under_way_ < window_ && messages_[next_].at <= now_; ++next_)
            begin(messages_[next_]);
        feed_all();
    }

    void begin(const Message& message) {
        const auto id = left_.size();
        left_.push_back(message.bytes);
        arrived_.push_back(0);
        ++under_way_;
        auto& peer = peers_[message.peer];
        if (message.bytes >= 2 * smallest_share && policy_.replans()) {
            peer.bulk.push_back({id, message.bytes});
            return;
        }
        refresh(peer);
        if (message.bytes < 2 * smallest_share) {
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

    void hand_over(std::size_t number, std::size_t place, std::uint64_t bytes, std::size_t message) {
        auto& peer = peers_[number];
        const auto& candidate = peer.candidates[place];
        const auto arrival = (*wires_)[candidate.rail].deliver(bytes, now_);
        finished_ = std::max(finished_, arrival);
        arrived_[message] = std::max(arrived_[message], arrival);
        acks_.push({answers_[candidate.rail].acknowledge(arrival), number, place, bytes, message});
        paces_[candidate.rail].sent(bytes, now_);
        node_.sent(candidate.rail, bytes, now_);
        peer.unacked[place] += bytes;
        policy_.charge(candidate, bytes, now_);
    }

    void acknowledged(const Ack& ack) {
        auto& peer = peers_[ack.peer];
        peer.unacked[ack.place] -= ack.bytes;
        paces_[peer.candidates[ack.place].rail].delivered(ack.bytes);
        left_[ack.message] -= ack.bytes;
        if (left_[ack.message] == 0) --under_way_;
    }

    void refresh(Peer& peer) {
        node_.look(now_);
        for (auto& candidate : peer.candidates) {
            const auto& pace = paces_[candidate.rail];
            candidate.cost = (*wires_)[candidate.rail].spec().cost();
            candidate.cost.gap = std::min(candidate.cost.gap, pace.gap_limit(now_));
            candidate.backlog = pace.backlog() + node_.others(candidate.rail).backlog;
            candidate.silent = pace.silent(now_);
            const auto measured = pace.per_byte(now_, candidate.cost.per_byte);
            if (measured > 0) candidate.cost.slope = candidate.cost.per_byte = measured;
            const auto arrived = node_.take_arrivals(candidate.rail);
            if (arrived > 0) policy_.charge(candidate, arrived, now_);
        }
    }

    void replan(Peer& peer) {
        drop_claims(peer);
        refresh(peer);
        auto candidates = peer.candidates;
        for (auto& candidate : candidates) candidate.claimed = claims_[candidate.rail];
        std::uint64_t left = 0;
        for (const auto& bulk : peer.bulk) left += bulk.bytes;
        policy_.split(candidates, left, now_, peer.claims);
        for (std::size_t i = 0; i < candidates.size(); ++i) claims_[candidates[i].rail] += peer.claims[i];
    }

    void drop_claims(Peer& peer) {
        for (std::size_t i = 0; i < peer.claims.size(); ++i)
            claims_[peer.candidates[i].rail] -= std::exchange(peer.claims[i], 0);
    }

    std::uint64_t piece_for(Peer& peer, std::size_t place) {
        replan(peer);
        const auto& candidate = peer.candidates[place];
        const auto claim = peer.claims[place];
        const auto span = to_ticks(horizon) + 4 * candidate.cost.latency;
        const auto per_byte = std::max(candidate.cost.per_byte, paces_[candidate.rail].own_per_byte());
        const auto enough = std::min<std::uint64_t>(static_cast<std::uint64_t>(span / per_byte),
                                                    paces_[candidate.rail].allowance(now_));
        if (claim == 0 || peer.unacked[place] >= std::max(enough, 2 * smallest_share)) return 0;
        const auto piece = static_cast<std::uint64_t>(to_ticks(piece_time) / candidate.cost.per_byte);
        return std::min({claim, std::clamp(piece, smallest_share, fragment), peer.bulk.front().bytes});
    }

    void feed_all() {
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

    Policy& policy_;
    std::shared_ptr<std::vector<Wire>> wires_;
    std::vector<Wire> answers_;  // of its own peers
    std::vector<Pace> paces_;
    NodeLoad node_;
    std::vector<std::uint64_t> claims_;
    std::vector<Peer> peers_;
    std::priority_queue<Ack> acks_;
    std::vector<std::uint64_t> left_;  // by message: not acknowledged
    std::vector<base::Nanoseconds> arrived_;
    std::vector<Message> messages_;
    std::size_t window_ = 0;
    std::size_t next_ = 0;
    std::size_t under_way_ = 0;
    std::size_t next_fed_ = 0;
    base::Nanoseconds now_ = 0;
    base::Nanoseconds finished_ = 0;
};

}  // namespace railmux::sched::test

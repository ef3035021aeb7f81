// World: a sender with several peers over rails (wire.hpp) under a fake clock. It calls the policy as src/rails does: small
// messages by choose, large ones planned anew at each acknowledgement, in pieces, with claims across peers. The
// replay of recorded messages runs policies in it. Time is a number: nothing here waits.
//
// Threads: one thread.
// Lifetime: the policy outlives it.
#pragma once

#include <deque>
#include <queue>
#include <span>
#include <vector>

#include "sched/pace.hpp"
#include "sched/policy.hpp"
#include "sched/wire.hpp"

namespace railmux::sched {

struct Message {
    std::size_t peer = 0;
    std::uint64_t bytes = 0;
    base::Nanoseconds at = 0;       // not before
    bool whole = false;             // never divided, whatever its size
    std::span<const Cost> costs{};  // of its peer's links from then on; empty: as they are
};

class World {
public:
    /// A link of a peer: the rail below it, how that behaves, and what the policy is told.
    struct Way {
        std::uint32_t rail = 0;
        std::uint64_t speed_bps = 0;
        Cost cost{};
    };

    /// Rails of one kind for all peers; `reach`: for each peer the rails that lead to it. Rates are learnt.
    World(Policy& policy, const std::vector<RailSpec>& rails, const std::vector<std::vector<std::uint32_t>>& reach);
    /// Links that behave as their costs say; the policy is told those and nothing that it could learn.
    World(Policy& policy, std::size_t rails, const std::vector<std::vector<Way>>& ways);

    /// Sends them in order, at most `window` at a time; returns when the last one has arrived. To be called once.
    base::Nanoseconds run(std::span<const Message> messages, std::size_t window);

    /// By message: when all of it had arrived.
    [[nodiscard]] std::span<const base::Nanoseconds> arrivals() const noexcept { return arrivals_; }

private:
    // As in src/rails/bulk.cpp.
    static constexpr std::uint64_t smallest_share = 16 * 1024;
    static constexpr std::uint64_t fragment = 256 * 1024;
    static constexpr base::Nanoseconds horizon = base::millisecond;
    static constexpr base::Nanoseconds piece_time = base::millisecond / 4;
    // As in src/rails/events.cpp.
    static constexpr base::Nanoseconds pause = 10 * base::millisecond;

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
        std::vector<RailSpec> specs;
        std::vector<Cost> costs;
        std::vector<std::uint64_t> claims;
        std::vector<std::uint64_t> unacked;
        std::deque<Bulk> bulk;
    };

    void add_way(Peer& peer, const Way& way, const RailSpec& spec);
    void begin(const Message& message);
    void hand_over(std::size_t number, std::size_t place, std::uint64_t bytes, std::size_t message);
    void acknowledged(const Ack& ack);
    void refresh(Peer& peer);
    void replan(Peer& peer);
    void drop_claims(Peer& peer);
    [[nodiscard]] std::uint64_t piece_for(Peer& peer, std::size_t place);
    void feed_all();

    Policy& policy_;
    bool learns_;
    std::vector<Wire> wires_;
    std::vector<Pace> paces_;
    std::vector<std::uint64_t> claims_;
    std::vector<Peer> peers_;
    std::priority_queue<Ack> acks_;
    std::vector<std::uint64_t> left_;  // by message: not acknowledged
    std::vector<base::Nanoseconds> arrivals_;
    std::size_t under_way_ = 0;
    std::size_t next_fed_ = 0;
    base::Nanoseconds now_ = 0;
    base::Nanoseconds acked_ = 0;  // when something last was
    base::Nanoseconds busy_ = 0;   // time in which there was traffic, pauses left out
};

}  // namespace railmux::sched

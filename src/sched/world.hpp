// World: a sender with several peers over rails (wire.hpp) under a fake clock. It calls the policy as src/rails does: small
// messages by choose, large ones planned anew at each acknowledgement, in pieces, with claims across peers. Several may
// share the rails, each a process of its own with its own peers, and see each other's load or not. The replay of recorded
// messages runs policies in it. Time is a number: nothing here waits.
//
// Threads: one thread.
// Lifetime: the policy and the rails outlive it, and so does a table that it joins.
#pragma once

#include <deque>
#include <limits>
#include <queue>
#include <span>
#include <vector>

#include "sched/claims.hpp"
#include "sched/fill.hpp"
#include "sched/node_load.hpp"
#include "sched/pace.hpp"
#include "sched/policy.hpp"
#include "sched/settling.hpp"
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

    /// Rails of one kind for all peers; `reach`: for each peer the rails that lead to it. The policy is told what a probe
    /// finds of them at the beginning, and rates are learnt.
    World(Policy& policy, std::span<Wire> rails, const std::vector<std::vector<std::uint32_t>>& reach);
    /// Links that behave as their costs say; the policy is told those and nothing that it could learn.
    World(Policy& policy, std::span<Wire> rails, const std::vector<std::vector<Way>>& ways);

    /// From now on it sees the load of the others in the table, and they see its own. False: not all of it, because the
    /// table is full.
    [[nodiscard]] bool join(LoadTable& table, std::uint64_t owner);

    static constexpr auto never = std::numeric_limits<base::Nanoseconds>::max();

    /// Sends them in order, at most `window` at a time; returns when the last one has arrived. Never: the policy left some
    /// lying.
    base::Nanoseconds run(std::span<const Message> messages, std::size_t window);

    /// The same, step by step. Of those that share rails, the one whose event is next makes the next step. The messages stay
    /// where they are for as long as anything is asked about them.
    void start(std::span<const Message> messages, std::size_t window);
    [[nodiscard]] base::Nanoseconds next_event() const;  // never: none is left
    void step();
    /// When the last one arrived, or never.
    [[nodiscard]] base::Nanoseconds finished() const;

    /// By message: when all of it had arrived.
    [[nodiscard]] std::span<const base::Nanoseconds> arrivals() const noexcept { return arrivals_; }
    /// From when a message could be sent until all of it was there, on average.
    [[nodiscard]] double mean_delivery_ns() const;
    /// What has been learnt of a rail: of its rate, and of what a byte of ours takes while others use it, too.
    [[nodiscard]] double per_byte_ns(std::size_t rail) const;
    [[nodiscard]] double own_per_byte_ns(std::size_t rail) const;

private:
    // As in src/rails/bulk_plan.cpp, but for its turns: to give something to a rail takes no time here, and no host tells what
    // has landed.
    static constexpr std::uint64_t smallest_share = 16 * 1024;
    static constexpr std::uint64_t fragment = 1024 * 1024;

    struct Ack {
        base::Nanoseconds at;
        std::size_t peer;
        std::size_t place;
        std::uint64_t bytes;
        std::size_t message;
        base::Nanoseconds arrival;
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

    World(Policy& policy, std::span<Wire> rails);
    void add_way(Peer& peer, const Way& way, const RailSpec& spec);
    [[nodiscard]] bool may_begin() const { return next_ < messages_.size() && under_way_ < window_; }
    void fill();
    void begin(const Message& message);
    void hand_over(std::size_t number, std::size_t place, std::uint64_t bytes, std::size_t message);
    void acknowledged(const Ack& ack);
    void learn_from_trial(const Ack& ack);
    void settle();
    void refresh(Peer& peer);
    bool replan(Peer& peer, bool again);
    [[nodiscard]] std::uint64_t piece_for(const Peer& peer, std::size_t place) const;
    void feed_all();
    void feed(std::size_t number);

    Policy& policy_;
    std::span<Wire> wires_;
    std::vector<Wire> answers_;  // the acknowledgements of its own peers
    std::vector<Pace> paces_;
    NodeLoad node_;
    Claims claims_;
    std::vector<Peer> peers_;
    std::priority_queue<Ack> acks_;
    std::span<const Message> messages_;
    std::size_t window_ = 0;
    std::size_t next_ = 0;             // to begin
    std::vector<std::uint64_t> left_;  // by message: not acknowledged
    std::vector<base::Nanoseconds> arrivals_;
    std::size_t under_way_ = 0;
    std::size_t next_fed_ = 0;
    base::Nanoseconds now_ = 0;
    BusyClock busy_;
    std::uint64_t acknowledged_ = 0;  // the rails where something was since the last settle()
    bool learns_ = false;
};

}  // namespace railmux::sched

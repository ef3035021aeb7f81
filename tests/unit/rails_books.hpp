// Books: a Ledger with one link to one peer, for its tests.
//
// Threads: one.
// Lifetime: a Books outlives the frames that it makes.
#pragma once

#include <catch2/catch.hpp>

#include <cstdint>
#include <memory>
#include <vector>

#include "rails/ledger.hpp"

namespace railmux::rails::test {

inline constexpr base::Nanoseconds step = 1000;  // between two frames
inline constexpr base::Nanoseconds there_and_back = 600;

/// One link to one peer.
struct Books {
    FramePool pool;
    PeerTable peers;
    LinkTable links{1};
    Looks looks;
    KeepingUp keeping_up;
    std::unique_ptr<sched::Policy> policy = sched::make_policy("vft", 1);
    Ledger ledger{1, *policy, peers, links, looks, keeping_up};
    Link* link = &links.add(0, {.index = 0, .generation = 1});
    Conversation* talk = nullptr;
    base::Nanoseconds now = base::second;

    Books() {
        link->peer = peers.of_instance(7, no_rank);
        link->state = LinkState::live;
        auto& known = peers[link->peer];
        known.talk = std::make_unique<Conversation>(pool);
        known.traffic = std::make_unique<Traffic[]>(1);
        link->traffic = known.traffic.get();
        talk = known.talk.get();
        talk->links = {link->slot};
        talk->candidates = {sched::Candidate{.rail = 0}};
        talk->costs = {sched::Cost{.latency = sched::to_ticks(base::Nanoseconds{300}),
                                   .gap = sched::to_ticks(base::Nanoseconds{100}),
                                   .per_byte = 16}};
    }
    Frame& frame(std::uint32_t bytes = 64) {
        Frame& made = *pool.take(FrameHeader::size);
        made.type = FrameType::eager;
        made.bytes = bytes;
        talk->session.enter(made, {});
        made.link = link->slot;
        made.sent = now;
        return made;
    }
    bool put_off(Frame& one) { return !ledger.put_off(one) || ledger.follow(*link, *talk, one, now); }
    /// The peer has everything before `ack`, says a frame of its own.
    void hear(std::uint32_t ack) {
        REQUIRE(talk->session.hear(ack) == Session::Hearing::news);
        ledger.heard(*link, *talk, {.type = FrameType::eager, .ack = ack}, now);
    }
    void take(std::uint32_t ack) {
        const FrameHeader header{.type = FrameType::eager, .ack = ack};
        {
            Ledger::Taking taking(ledger, *link, header, now);
            const auto each = [&](Frame& one) {
                taking(one);
                pool.give(&one);
            };
            REQUIRE(talk->session.acknowledged(ack, {}, each));
        }
        ledger.settle(now, 0);
    }
    /// One that had a choice. `waits`: in the link's outbox, until it is taken from there.
    void hand_over(Frame& one, bool waits = false) {
        one.sent = now;
        one.queued = waits;
        const auto asked = ledger.ask(*link, one, now);
        if (waits) link->outbox.push(&one);
        ledger.charge(*link, one, now);
        ledger.note(*link, one, asked);
    }
    /// The rail is given all that waits for it.
    void post() {
        if (link->timed_waits) Ledger::posting(*link, now);
        while (!link->outbox.empty()) {
            Frame* const gone = link->outbox.pop();
            gone->queued = false;
            link->last_posted = gone->sent;
        }
    }
    /// One that meets an empty link; all before it have come, too.
    void exchange(std::uint32_t bytes, base::Nanoseconds took) {
        Frame& one = frame(bytes);
        const auto ack = one.seq + 1;
        ledger.charge(*link, one, now);
        now += took;
        take(ack);
    }
    /// As the policy is told it.
    [[nodiscard]] sched::Ticks latency() {
        ledger.refresh(*talk, now);
        return talk->candidates.front().cost.latency;
    }
    [[nodiscard]] std::uint64_t backlog() const { return ledger.pace(0).backlog(); }
};

}  // namespace railmux::rails::test

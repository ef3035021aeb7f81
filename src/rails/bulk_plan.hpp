// BulkPlan: which rail carries how much of large messages: divided beforehand, or what is left of them anew as they go,
// where the policy can do that. What is planned for a link and not handed over yet is its claim, which counts for who
// shares its rail. A large message that is alone may be left whole (sched::Division).
//
// Threads: one engine at a time.
// Lifetime: refers to what belongs to the rail manager that has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "rails/ledger.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"
#include "rails/regions.hpp"
#include "rails/upper.hpp"
#include "sched/claims.hpp"
#include "sched/policy.hpp"

namespace railmux::rails {

/// A part of a large message, and the local rail planned for it.
struct RailShare {
    std::uint32_t rail = 0;
    std::uint64_t bytes = 0;
};

class BulkPlan {
public:
    // So many pieces of bulk a link holds at least: one on its way, one to follow without a gap.
    static constexpr std::uint32_t pieces_per_link = 2;

    BulkPlan(RailSet& rails, sched::Policy& policy, Upper& upper, Ledger& ledger, PeerTable& peers, LinkTable& links,
             const Regions& regions);

    // --- As it goes --------------------------------------------------------------------------------------------------

    /// Whether the policy splits what is left of bulk anew as it goes: then split() is not asked.
    [[nodiscard]] bool replans() const noexcept { return policy_.replans(); }
    /// Plans what is left for the peer, by what is known now: before its links are given anything. `again`: by what was
    /// known a moment ago, but for others' claims. Returns whether there is more than was planned before.
    bool renew(std::uint32_t peer, base::Nanoseconds now, bool again = false);
    /// How much bulk the link should be given now, of pieces of `largest` bytes at most, by the plan.
    [[nodiscard]] std::uint64_t piece_for(Link& link, std::uint64_t largest, base::Nanoseconds now);
    /// It was given a piece of so many bytes. Returns whether that was all that was planned for it.
    bool given(const Link& link, std::uint64_t bytes) noexcept;
    /// What was handed over for the conversation before has been acknowledged.
    static void acknowledged(Conversation& talk, base::Nanoseconds now) noexcept {
        if (talk.division.awaited() && !talk.heavy_outstanding()) talk.division.arrived(now);
    }
    /// Whether a message that begins now has these, the conversation's links, to itself.
    [[nodiscard]] static bool idle(const Conversation& talk, std::span<const sched::Candidate> candidates) noexcept;
    /// When what is left of bulk is to be planned anew even if nothing has happened by then.
    [[nodiscard]] base::Nanoseconds look_again() const noexcept { return look_again_; }
    [[nodiscard]] bool take_due(base::Nanoseconds now) noexcept {
        if (now < look_again_) return false;
        look_again_ = base::never;
        return true;
    }
    /// Nothing is planned for the links of this conversation.
    void drop(Conversation& talk) noexcept;
    /// What is planned for a rail: of all conversations.
    [[nodiscard]] std::uint64_t claimed(std::uint32_t rail) const noexcept { return claims_.of(rail); }

    /// Whether that is what the conversations claim: for assertions and tests.
    [[nodiscard]] bool balanced() const;

    // --- Beforehand --------------------------------------------------------------------------------------------------

    /// How the policy would split `bytes` over the links to the peer that reach one of the target's regions. Empty when
    /// none does now.
    void split(std::uint32_t peer, const BulkTarget& target, std::uint64_t bytes, base::Nanoseconds now,
               std::vector<RailShare>& shares);
    /// Of `bytes` that the peer has, and offers in `source`: how many are to be got over the links that can get them from
    /// there, if the others bring what is left in the same time.
    [[nodiscard]] std::uint64_t split_gets(std::uint32_t peer, const BulkTarget& source, std::uint64_t bytes,
                                           base::Nanoseconds now);
    static constexpr std::uint32_t every_rail = ~std::uint32_t{0};
    /// Whether a link, of that rail or of any, leads to the peer over which something could be got from there.
    [[nodiscard]] bool can_get(std::uint32_t peer, const BulkTarget& source, std::uint32_t rail = every_rail);
    /// Whether a link to the peer could get into memory that stays registered.
    [[nodiscard]] bool getting_saves(std::uint32_t peer);
    /// Whether the peer does better to get so many bytes over one of its links than to have them put.
    [[nodiscard]] bool prefers_get(std::uint32_t peer, std::uint64_t bytes);
    /// How many of `bytes` are better sent to the peer before it has said where to: all, where that is faster than to ask; else
    /// what the link carries until the answer is here, `most` at most, if there is but one to carry it. None while the last
    /// such bytes are not acknowledged, where a rail puts or gets without a copy, or processors move its bytes, which have
    /// nothing to wait for.
    [[nodiscard]] std::uint64_t unasked(std::uint32_t peer, std::uint64_t bytes, std::uint64_t most,
                                        base::Nanoseconds now);
    /// Whether one of the peer's links leads to a rail that `target` has a key for, reserves left out.
    [[nodiscard]] bool reaches(std::uint32_t peer, const BulkTarget& target);

private:
    [[nodiscard]] bool gets_from(std::uint32_t slot, const BulkTarget& source);
    [[nodiscard]] std::uint64_t split_anew(std::uint32_t peer, Conversation& talk, base::Nanoseconds now);
    [[nodiscard]] bool leave_whole(Conversation& talk, base::Nanoseconds now);
    void claim(std::uint64_t bytes, base::Nanoseconds now);
    [[nodiscard]] bool keep_only(std::size_t place);

    RailSet& rails_;
    sched::Policy& policy_;
    Upper& upper_;
    Ledger& ledger_;
    PeerTable& peers_;
    LinkTable& links_;
    const Regions& regions_;
    sched::Claims claims_;
    std::vector<std::size_t> places_;           // scratch: of what is split, its links' places,
    std::vector<sched::Candidate> candidates_;  // what the policy is to know of them,
    std::vector<std::uint64_t> shares_;         // and what each gets
    std::vector<std::uint64_t> received_;       // by all links
    base::Nanoseconds look_again_ = base::never;
};

}  // namespace railmux::rails

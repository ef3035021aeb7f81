// Spreading: how heavy frames to a peer are spread over its links, where they leave in bursts (sched::SpreadContest): what is
// tried here, or what the peer says that it does, and by which rates turns go.
//
// Threads: one thread at a time.
// Lifetime: a value; of one peer and its links; a new one for others.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "rails/frame.hpp"
#include "rails/session.hpp"
#include "sched/lulls.hpp"
#include "sched/pace.hpp"
#include "sched/policy.hpp"
#include "sched/rate_turns.hpp"
#include "sched/spread_contest.hpp"

namespace railmux::rails {

class Spreading {
public:
    /// How they go now.
    [[nodiscard]] sched::Spread now() const noexcept { return now_; }
    /// Whether they leave in bursts.
    [[nodiscard]] bool lone() const noexcept { return contest_.lone(); }

    /// A frame of the peer's came in.
    void heard(const FrameHeader& header) noexcept { there_ = spread_of(header); }
    /// A heavy one did.
    void heavy_came(base::Nanoseconds when) noexcept { lulls_.came(under_way_, when); }
    /// All of ours before that number are known to have arrived.
    void came_through(std::uint32_t number, base::Nanoseconds when) noexcept {
        if (!under_way_) return;
        lulls_.came_through(when);
        under_way_ = static_cast<std::int32_t>(number - end_) < 0;
    }
    /// One of so many bytes goes by the link of that place. `large`: changes when one is sent that is longer than heavy ones;
    /// `follows`: the peer tries.
    void went(std::uint64_t bytes, std::size_t place, const Session& session, std::span<sched::Candidate> candidates,
              std::uint32_t large, bool follows, base::Nanoseconds when) noexcept {
        sched::SpreadContest::Score score{
            .handed = session.numbered(), .sent = session.heard(), .received = session.ack(), .others = large};
        lulls_.sent(under_way_, when);
        under_way_ = true;
        end_ = score.handed;
        score.lulls = lulls_.all();
        for (const auto& candidate : candidates) score.heavy_received += candidate.heavy_received;
        score.rates_shown = sched::rates_shown(candidates);
        score.rates_supposed = sched::rates_supposed(candidates);
        contest_.went(bytes, score, follows, when);
        last_ = when;
        for (std::size_t i = 0; i < candidates.size(); ++i) {
            candidates[i].with_heavy = true;
            candidates[i].last_heavy = i == place;
        }
    }

    /// Tells the candidates how the next ones go. Turns that served are kept while another way is tried; who follows does not
    /// know, but trials are short.
    void tell(std::span<sched::Candidate> candidates, std::span<const sched::Pace> paces,
              base::Nanoseconds when) noexcept {
        if (contest_.lone()) lulls_.expect(longest_delivery(candidates));
        const auto before = std::exchange(now_, contest_.spread(there_));
        const auto active = when - lulls_.all();
        for (auto& candidate : candidates) {  // also where links are others now
            candidate.spread = now_;
            candidate.with_heavy = when - last_ < with_heavy;
        }
        if (now_ != before && before == sched::Spread::by_rate) turns_ended_ = active;
        if (now_ != sched::Spread::by_rate) return;
        const bool goes_on = now_ == before || (!contest_.trying() && active - turns_ended_ < longest_trial);
        if (goes_on && sched::turns_known(candidates)) return turns_.follow(candidates, paces, when);
        if (sched::rates_shown(candidates)) turns_.begin(candidates, when);
    }

private:
    [[nodiscard]] static base::Nanoseconds longest_delivery(std::span<const sched::Candidate> candidates) noexcept {
        sched::Ticks longest = 0;
        for (const auto& candidate : candidates) {
            const auto per_byte = std::max(candidate.cost.per_byte, candidate.shown);
            longest = std::max(longest, candidate.cost.latency + sched::times(sched::heavy_bytes, per_byte));
        }
        return longest / sched::ticks_per_ns;
    }

    // Windows of 40 ms at most, and what comes before these.
    static constexpr base::Nanoseconds longest_trial = 150 * base::millisecond;

    // Light frames belong to bursts of heavy ones if these went so short a time ago.
    static constexpr base::Nanoseconds with_heavy = base::millisecond;

    sched::SpreadContest contest_;
    sched::Lulls lulls_;
    base::Nanoseconds last_ = -with_heavy;  // when a heavy one went
    bool under_way_ = false;                // one of ours is,
    std::uint32_t end_ = 0;                 // ... one beyond its number
    sched::RateTurns turns_;
    sched::Spread now_ = sched::Spread::predicted;
    sched::Spread there_ = sched::Spread::predicted;  // as the peer says
    base::Nanoseconds turns_ended_ = 0;               // by rates, the last ones; lulls do not count
};

}  // namespace railmux::rails

// AckRoute: the link that an acknowledgement takes which goes by itself, and what else may go over any; and its frame.
//
// Threads: one engine at a time.
// Lifetime: refers to what belongs to the rail manager that has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.hpp"
#include "rails/arrival_times.hpp"
#include "rails/frame_pool.hpp"
#include "rails/ledger.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/session.hpp"
#include "rails/shown_rate.hpp"
#include "sched/policy.hpp"

namespace railmux::rails {

/// What has arrived. Nobody acknowledges it, and it may be lost or come twice.
[[nodiscard]] Frame* ack_frame(FramePool& pool, const Session& session);
/// The same, and the answer to the frame `seq`, which was to be timed; and what traffic has shown here of some rail.
[[nodiscard]] Frame* time_frame(FramePool& pool, const Session& session, std::uint32_t seq, const ArrivalTimes& times,
                                const ShownRate& rate);

class AckRoute {
public:
    /// An acknowledgement may be kept back for `patience`, on its link, too.
    AckRoute(const sched::Policy& policy, Ledger& ledger, LinkTable& links, base::Nanoseconds patience)
        : policy_(policy), ledger_(ledger), links_(links), patience_(patience) {}

    /// For the next acknowledgement to a peer that has links.
    [[nodiscard]] Link& next(Conversation& talk, base::Nanoseconds now) noexcept;
    /// Of the links of a peer that has any, the one with least to send. One that is spare because processors move it does not
    /// count: where it gets on, so does the one that they use.
    [[nodiscard]] Link& least_busy(const Conversation& talk) noexcept;

    /// The place of the link with the least latency. Under load latencies are known to some ten microseconds only: of those
    /// that differ by less, the `usual` one, which the peer's last frame came over (none: any number beyond), as what brings
    /// nothing is soon looked at less often, on both sides. A narrow rail misses most what a packet costs it: so where `data`
    /// comes in, of the one over which some would be there first, were all idle.
    [[nodiscard]] static std::size_t best(std::span<const sched::Candidate> candidates, bool data,
                                          std::size_t usual) noexcept;

private:
    const sched::Policy& policy_;
    Ledger& ledger_;
    LinkTable& links_;
    base::Nanoseconds patience_;
};

}  // namespace railmux::rails

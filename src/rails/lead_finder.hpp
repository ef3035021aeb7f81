// LeadFinder: which frames may follow one that has just had a choice, where, and for how long (Leads).
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; refers to its policy, ledger and links.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "rails/lead.hpp"
#include "rails/ledger.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "sched/policy.hpp"

namespace railmux::rails {

/// Where it is not loads that decide, but one of the two ends, or which rails are spare: that is judged more often.
inline constexpr base::Nanoseconds long_lead_time = 100 * base::microsecond;

class LeadFinder {
public:
    LeadFinder(sched::Policy& policy, Ledger& ledger, LinkTable& links)
        : policy_(policy), ledger_(ledger), links_(links) {}

    /// That was the choice for the frame, by what is known of the links now. Those that follow it may need none of their own.
    void chosen(Conversation& talk, const Frame& frame, std::size_t choice, base::Nanoseconds now);

private:
    void find_light(Conversation& talk, std::uint64_t bytes, std::size_t choice, base::Nanoseconds now);
    void find_heavy(Conversation& talk, std::uint64_t bytes, std::size_t choice, base::Nanoseconds now);
    [[nodiscard]] Lead lead_of(const Conversation& talk, std::size_t choice, std::uint64_t most, base::Nanoseconds now);

    sched::Policy& policy_;
    Ledger& ledger_;
    LinkTable& links_;
};

}  // namespace railmux::rails

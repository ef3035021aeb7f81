// Survey: what is known of links, for whoever asks, and what is measured of them when somebody asks.
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; refers to its links and to what measures them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <railmux/assessment.hpp>
#include <railmux/loggp.hpp>

#include "base/clock.hpp"
#include "rails/assessor.hpp"
#include "rails/eager_switch.hpp"
#include "rails/flooder.hpp"
#include "rails/groups.hpp"
#include "rails/ledger.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"
#include "sched/policy.hpp"

namespace railmux::rails {

class Survey {
public:
    /// What others know of the links.
    struct Sources {
        const Ledger& ledger;
        const EagerSwitch& eager;
        const Groups& groups;
    };

    Survey(const RailSet& rails, const PeerTable& peers, LinkTable& links, const Sources& known, Assessor& assessor,
           Flooder& flooder)
        : rails_(rails), peers_(peers), links_(links), known_(known), assessor_(assessor), flooder_(flooder) {}

    // --- What is known -----------------------------------------------------------------------------------------------

    /// Links to the peer, by number; a number is good until the link dies.
    [[nodiscard]] std::vector<std::uint32_t> links(std::uint32_t peer) const;
    [[nodiscard]] std::uint32_t rail_of(std::uint32_t link) const { return links_.at(link).rail; }
    /// Of each, by what traffic has shown until now.
    [[nodiscard]] std::vector<LinkModel> models(std::uint32_t peer, base::Nanoseconds now) const;
    /// The same of links that have ended, and that no other one has taken the place of.
    [[nodiscard]] std::vector<LinkModel> ended_models(std::uint32_t peer) const;
    [[nodiscard]] const ProbeSpent& probe_spent(std::uint32_t rail) const noexcept { return assessor_.spent(rail); }
    /// What a policy is to know of a link, by its model.
    [[nodiscard]] static sched::Cost cost_by(const LogGP& model);
    /// The link is about to end: whoever looks back wants to know what it was like.
    void keep(const Link& link, base::Nanoseconds now) const;

    // --- What is measured --------------------------------------------------------------------------------------------

    /// Starts a full measurement of a link; how far it is, from 0 to 1; and its result, once, when it is at 1. There is no
    /// result when the link died.
    void measure(std::uint32_t link, const AssessOptions& options);
    void stop_measuring(std::uint32_t link);
    [[nodiscard]] double measured(std::uint32_t link) const;
    [[nodiscard]] std::optional<LinkAssessment> take_assessment(std::uint32_t link, base::Nanoseconds now);
    /// Floods links of a peer at the same time; how far that is, from 0 to 1; and what they brought together, in bits per
    /// second: 0 if it ends before it is at 1, or when one of them died. False, and nothing happens, if one is dead.
    [[nodiscard]] bool flood(std::span<const std::uint32_t> links);
    [[nodiscard]] double flooded() const noexcept { return flooder_.progress(); }
    double end_flood() noexcept { return flooder_.end(); }

private:
    [[nodiscard]] LinkModel model_of(const Link& link, base::Nanoseconds now) const;

    const RailSet& rails_;
    const PeerTable& peers_;
    LinkTable& links_;
    Sources known_;
    Assessor& assessor_;
    Flooder& flooder_;
};

}  // namespace railmux::rails

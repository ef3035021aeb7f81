// Groups: links to one peer that share a bottleneck. They count as one: those that fill it are used, the others are spare until
// one of these is lost. Those that processors move share these by their nature (sched::Processors): of them the fastest stands
// for all where others were found to share with it.
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; refers to its rails, links and peers. What is known of a group belongs to the
// conversation with its peer.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <railmux/assessment.hpp>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "model/bottleneck.hpp"
#include "rails/eager_switch.hpp"
#include "rails/ledger.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"

namespace railmux::rails {

class Groups {
public:
    Groups(const RailSet& rails, PeerTable& peers, LinkTable& links, Ledger& ledger, EagerSwitch& eager,
           base::Logger& log)
        : rails_(rails), peers_(peers), links_(links), ledger_(ledger), eager_(eager), log_(log) {}

    /// Flooded one by one these links of the peer brought `alone_bps`; `groups` (of places in `links`) share. Whatever was
    /// known of groups before is forgotten.
    void note(std::uint32_t peer, std::span<const std::uint32_t> links, std::span<const double> alone_bps,
              std::span<const model::Bottleneck> groups);
    /// The link is gone: what it was spared for, or spared, is to be found out anew.
    static void forget(Conversation& talk, const Link& with) noexcept;
    /// After acknowledgements: a group whose used rails have become much slower is none any more; the spare ones may be better.
    void review(Conversation& talk, base::Nanoseconds now);

    /// Adds the group of a live link to what is told of it.
    void describe(LinkModel& model, const Link& link) const;
    /// Why a live link is given nothing now; empty if that is not so.
    [[nodiscard]] std::string why_spare(const Link& link) const;

private:
    [[nodiscard]] const transports::RailTraits& traits(std::uint32_t rail) const noexcept {
        return rails_[rail].traits();
    }

    const RailSet& rails_;
    PeerTable& peers_;
    LinkTable& links_;
    Ledger& ledger_;
    EagerSwitch& eager_;
    base::Logger& log_;
};

}  // namespace railmux::rails

// RailManager: why a message goes the way it goes.
#include "rails/rail_manager.hpp"
#include "sched/explain.hpp"

namespace railmux::rails {

namespace {

Nanos nanos(sched::Ticks ticks) { return Nanos{static_cast<double>(ticks) / sched::ticks_per_ns}; }

}  // namespace

Explanation RailManager::explain(std::uint32_t peer, std::uint64_t bytes, bool divisible, base::Nanoseconds now) {
    auto& talk = *peers_[peer].talk;
    static_cast<void>(catch_up());  // the answer is for what is known
    ledger_.refresh(talk, now);
    auto candidates = talk.candidates;
    std::vector<std::string> names;
    Explanation told{.peer = Peer::from_index(peer), .policy = std::string(policy_.name()), .wire_bytes = bytes};
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        // What this peer's own large messages still bring goes before it, too.
        if (divisible) candidates[i].claimed = plan_.claimed(candidates[i].rail);
        names.push_back(rails_[candidates[i].rail].traits().name);
    }
    auto verdict = sched::judge(policy_, candidates, bytes, now, divisible);
    const auto preference = talk.division.preference(bytes);
    const bool whole = divisible && preference && preference->place == verdict.choice &&
                       verdict.prospects[verdict.choice].share < bytes && BulkPlan::idle(talk, candidates);
    if (whole) sched::leave_whole(verdict, bytes);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto& candidate = candidates[i];
        const auto& prospect = verdict.prospects[i];
        told.links.push_back({.rail = names[i],
                              .link = links_.at(talk.links[i]).label,
                              .latency = nanos(candidate.cost.latency),
                              .per_byte = nanos(divisible ? candidate.cost.per_byte : candidate.cost.slope),
                              .gap = nanos(candidate.cost.gap),
                              .backlog_bytes = candidate.backlog,
                              .claimed_bytes = candidate.claimed,
                              .spare = groups_.why_spare(links_.at(talk.links[i])),
                              .recent = candidate.recent,
                              .wait = nanos(prospect.wait),
                              .delivery = nanos(prospect.delivery),
                              .share_bytes = prospect.share,
                              .share_delivery = nanos(prospect.share_delivery)});
    }
    told.choice = verdict.choice;
    told.reason = whole ? sched::reason_for_whole(*preference) : sched::reason(policy_, verdict, candidates, names);
    return told;
}

}  // namespace railmux::rails

#include "rails/lead_finder.hpp"

#include <algorithm>
#include <bit>

namespace railmux::rails {

namespace {
// Other rails' costs and loads, and the clocks, change little within that: a few round trips of the fastest networks.
constexpr base::Nanoseconds lead_time = 10 * base::microsecond;
// Where next to nothing is on any rail, and nothing heavy is handed to one: many round trips of Ethernet, so that who awaits
// the answer to each message spends a four hundredth of the time on choices, each of which takes half a microsecond and more.
constexpr base::Nanoseconds idle_lead_time = 250 * base::microsecond;
// No rail is slower; and what a light frame takes is far from overflow.
constexpr sched::Ticks longest_per_byte = sched::to_ticks(base::second);
}  // namespace

void LeadFinder::chosen(Conversation& talk, const Frame& frame, std::size_t choice, base::Nanoseconds now) {
    const auto bytes = frame.wire_bytes();
    if (!policy_.predicts() && policy_.lead(talk.candidates, choice, bytes, now) == Lead::unlimited) {
        talk.leads.light = Lead::only(links_.at(talk.links[choice]), now + long_lead_time);
        return;
    }
    bytes > sched::light_bytes ? find_heavy(talk, bytes, choice, now) : find_light(talk, bytes, choice, now);
}

void LeadFinder::find_light(Conversation& talk, std::uint64_t bytes, std::size_t choice, base::Nanoseconds now) {
    auto& leads = talk.leads;
    if (now < leads.light.until) {
        leads.handed += leads.light.time_of(bytes);
        return;
    }
    const bool behind = talk.candidates[choice].behind;
    const bool idle = talk.rails_idle();
    leads.rebase();
    leads.light = lead_of(talk, choice, sched::light_bytes, now);
    leads.light.until = now + (behind ? long_lead_time : idle ? idle_lead_time : lead_time);
    leads.handed = leads.light.time_of(bytes);
    if (idle && leads.light.slack != Lead::unlimited) ledger_.leads_by_idle(leads.light.link->peer);
}

/// If next to nothing is on the rails, and no trial under way of where such frames go. The others of a burst, the bundles of
/// small messages say, may be somewhat longer than the first.
void LeadFinder::find_heavy(Conversation& talk, std::uint64_t bytes, std::size_t choice, base::Nanoseconds now) {
    if (bytes > sched::heavy_bytes || talk.heavy_contest.favoured() != sched::Contest::none || !talk.rails_idle())
        return;
    auto& leads = talk.leads;
    leads.rebase();
    leads.heavy = lead_of(talk, choice, std::min(std::bit_ceil(bytes), sched::heavy_bytes), now);
    if (leads.heavy.slack == 0) leads.heavy = lead_of(talk, choice, bytes, now);
    if (leads.heavy.slack == 0) return;
    leads.heavy.until = now + idle_lead_time;
    leads.last_link = talk.last_link;
    leads.handed = leads.heavy.time_of(bytes);
    ledger_.leads_by_idle(leads.heavy.link->peer);
    if (sched::place_along(talk.candidates, sched::light_bytes) != choice) return;
    auto light = lead_of(talk, choice, sched::light_bytes, now);
    if (light.slack == 0) return;  // so much waits there that they have a choice
    light.until = talk.candidates[choice].behind ? now + long_lead_time : leads.heavy.until;
    leads.light = light;
}

/// That of frames of at most `most` bytes for which that was the choice. It lasts as long as the caller says.
Lead LeadFinder::lead_of(const Conversation& talk, std::size_t choice, std::uint64_t most, base::Nanoseconds now) {
    const auto& chosen = talk.candidates[choice];
    Lead lead{.link = &links_.at(talk.links[choice]), .most = most};
    lead.slack = policy_.lead(talk.candidates, choice, most, now);
    if (lead.slack == Lead::unlimited || talk.rails_idle()) lead.idle_slack = lead.slack;
    lead.gap = chosen.stream && most <= sched::light_bytes ? 0 : chosen.cost.gap;
    lead.per_byte = std::min(chosen.cost.per_byte, longest_per_byte);
    return lead;
}

}  // namespace railmux::rails

#include "rails/bulk_plan.hpp"

#include <algorithm>
#include <utility>

namespace railmux::rails {

namespace {
// A share smaller than this costs its rail more in frames than it saves in time: at 1 Gbit/s 16 KiB take 131 us, some
// tens of times what a put and its closing frame cost a CPU.
constexpr std::uint64_t smallest_share = 16 * 1024;

// Where nothing is to be decided pieces need not be small: larger ones cost less, and what else there is to be sent waits for
// them no longer on fast rails than on others.
constexpr std::uint64_t smallest_alone = 256 * 1024;

// Where pieces are summed they are to be in the core's own cache still (1 MiB and less, with the kernel's copies of them) when
// they are sent, and when they have come: unshaped, pieces of 256 KiB were half as fast (docs/failover.md).
constexpr std::uint64_t summed_piece = 64 * 1024;

// An announcement is answered after two latencies, and what both sides do meanwhile: about as long on fast networks.
constexpr sched::Ticks answer_latencies = 4;
// Nor is more taken to have landed unseen than passes in this time: twice what a peer has on its rail for the way back, behind
// which acknowledgements wait. One that is away acknowledges nothing either.
constexpr base::Nanoseconds longest_unseen = 4 * base::millisecond;

// So small a part of a message (a thirty-second) saves less time than it varies by.
constexpr std::uint64_t least_unasked = 32;
}  // namespace

BulkPlan::BulkPlan(RailSet& rails, sched::Policy& policy, Upper& upper, Ledger& ledger, PeerTable& peers,
                   LinkTable& links, const Regions& regions)
    : rails_(rails),
      policy_(policy),
      upper_(upper),
      ledger_(ledger),
      peers_(peers),
      links_(links),
      regions_(regions),
      claims_(rails.capacity()) {}

// --- As it goes ------------------------------------------------------------------------------------------------------

bool BulkPlan::renew(std::uint32_t peer, base::Nanoseconds now, bool again) {
    auto& talk = *peers_[peer].talk;
    const auto planned = claims_.drop(talk.candidates, talk.claims);
    if (talk.links.empty()) return false;
    if (!again) ledger_.refresh(talk, now);
    talk.planned = now;
    return policy_.replans() && split_anew(peer, talk, now) > planned;
}

std::uint64_t BulkPlan::piece_for(Link& link, std::uint64_t largest, base::Nanoseconds now) {
    const auto& talk = *peers_[link.peer].talk;
    const auto most = link.checksum ? std::min(largest, summed_piece) : largest;
    const auto& cost = talk.candidates[link.place].cost;
    const auto carries = [](sched::Ticks time, sched::Ticks per_byte) {
        return static_cast<std::uint64_t>(time / per_byte);
    };
    const auto timely = carries(sched::to_ticks(sched::piece_time), cost.per_byte);
    // With one link there is nothing to decide: it is kept full. What it claims still counts for other peers.
    if (!policy_.replans() || talk.links.size() == 1 || talk.only == link.place)
        return link.bulk < pieces_per_link ? std::clamp(2 * timely, std::min(smallest_alone, most), most) : 0;
    const auto claim = talk.claims[link.place];
    if (claim == 0) {
        link.fill.nothing();
        return 0;
    }
    const auto piece = std::clamp(timely, std::min(smallest_share, most), most);
    // Both where its host says what has landed: there a piece is done as soon as the transport has it, and others do not tell a
    // dry rail from late acknowledgements.
    const bool known = link.underway.host_tells();
    const auto untaken = carries(2 * (sched::to_ticks(sched::piece_time) + cost.latency), cost.per_byte);
    if (known && link.bulk >= std::max<std::uint64_t>(pieces_per_link, untaken / std::max<std::uint64_t>(piece, 1)))
        return 0;
    const auto& pace = ledger_.pace(link.rail);
    const auto unconfirmed = link.underway.on_the_way();
    if (known) link.fill.looked(unconfirmed, now);
    // Of a rail that others use, too, we fill what is ours: together they would line up work for many times as long.
    const auto per_byte = std::max(cost.per_byte, pace.own_per_byte());
    const auto carried = carries(sched::to_ticks(link.fill.span(now)) + 4 * cost.latency, per_byte);
    // What has landed is no work for the rail, acknowledged or not.
    const auto landed = known ? 0 : std::min(pace.landed_unseen(), carries(sched::to_ticks(longest_unseen), per_byte));
    const auto on_the_way = unconfirmed - std::min(unconfirmed, landed);
    const auto allowance = ledger_.allowance(link.rail);
    if (on_the_way >= std::max(std::min(carried, allowance), 2 * smallest_share)) {
        allowance < carried ? link.fill.nothing() : link.fill.enough(on_the_way);
        return 0;
    }
    return std::min({claim, piece, std::max(allowance, smallest_share)});
}

/// Splits what is left for the peer over its links as they are now. Returns how much that is.
std::uint64_t BulkPlan::split_anew(std::uint32_t peer, Conversation& talk, base::Nanoseconds now) {
    std::uint64_t left = 0;
    candidates_.clear();
    places_.clear();
    for (std::size_t i = 0; i < talk.links.size(); ++i) {
        const auto bytes = upper_.bulk_left(peer, links_.at(talk.links[i]).remote_rail);
        if (bytes == 0) continue;
        left = std::max(left, bytes);
        candidates_.push_back(talk.candidates[i]);
        places_.push_back(i);
    }
    if (candidates_.empty()) return 0;
    auto& division = talk.division;
    const bool begins = division.begins(left);
    const bool shared = std::ranges::any_of(candidates_, [&](const auto& c) { return claims_.of(c.rail) > 0; });
    if (shared || (division.whole(now) && !keep_only(division.place()))) division.spoil();
    claim(left, now);
    if (begins && !shared && idle(talk, candidates_) && leave_whole(talk, now)) {
        static_cast<void>(claims_.drop(candidates_, shares_));
        static_cast<void>(keep_only(division.place()));
        claim(left, now);
    }
    // Nothing may come of a rail that has come to a stop.
    if (division.whole(now)) look_again_ = std::min(look_again_, division.patience());
    for (std::size_t i = 0; i < places_.size(); ++i) talk.claims[places_[i]] = shares_[i];
    return left;
}

/// Whether a message that is alone is better not divided as it is planned.
bool BulkPlan::leave_whole(Conversation& talk, base::Nanoseconds now) {
    if (candidates_.size() == 1) return false;
    received_.clear();
    for (const auto slot : talk.links) received_.push_back(links_.at(slot).bulk_received);
    return talk.division.begin_lone(places_, shares_, {.received = received_, .follow = talk.follows}, now);
}

void BulkPlan::claim(std::uint64_t bytes, base::Nanoseconds now) {
    shares_.assign(candidates_.size(), 0);
    claims_.plan(policy_, candidates_, bytes, now, shares_);
}

/// Of what is to be split. False, and nothing happens: it is not to go over that one.
bool BulkPlan::keep_only(std::size_t place) {
    const auto kept = std::ranges::find(places_, place);
    if (kept == places_.end()) return false;
    const auto candidate = candidates_[static_cast<std::size_t>(kept - places_.begin())];
    if (candidate.spare) return false;
    places_ = {place};
    candidates_ = {candidate};
    return true;
}

bool BulkPlan::idle(const Conversation& talk, std::span<const sched::Candidate> candidates) noexcept {
    const auto nothing = [](const sched::Candidate& c) { return c.claimed == 0 && c.backlog < smallest_share; };
    return !talk.heavy_outstanding() && std::ranges::all_of(candidates, nothing);
}

bool BulkPlan::given(const Link& link, std::uint64_t bytes) noexcept {
    if (!policy_.replans()) return false;
    auto& talk = *peers_[link.peer].talk;
    talk.division.given(bytes);
    auto& claim = talk.claims[link.place];
    claims_.given(link.rail, claim, bytes);
    return claim == 0;
}

bool BulkPlan::balanced() const {
    std::vector<std::uint64_t> claimed(rails_.capacity(), 0);
    for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
        const auto* talk = peers_[peer].talk.get();
        if (talk == nullptr) continue;
        for (std::size_t i = 0; i < talk->links.size(); ++i) {
            claimed[talk->candidates[i].rail] += talk->claims[i];
            if (talk->claims[i] > 0 && upper_.bulk_left(peer, links_.at(talk->links[i]).remote_rail) == 0) return false;
        }
    }
    for (std::uint32_t rail = 0; rail < claimed.size(); ++rail) {
        if (claimed[rail] != claims_.of(rail)) return false;
    }
    return true;
}

void BulkPlan::drop(Conversation& talk) noexcept { static_cast<void>(claims_.drop(talk.candidates, talk.claims)); }

// --- Beforehand ------------------------------------------------------------------------------------------------------

bool BulkPlan::can_get(std::uint32_t peer, const BulkTarget& source, std::uint32_t rail) {
    const auto* talk = peers_[peer].talk.get();
    return talk != nullptr && std::ranges::any_of(talk->links, [&](auto slot) {
               return (rail == every_rail || links_.at(slot).rail == rail) && gets_from(slot, source);
           });
}

bool BulkPlan::getting_saves(std::uint32_t peer) {
    const auto* talk = peers_[peer].talk.get();
    return talk != nullptr && std::ranges::any_of(talk->links, [&](auto slot) {
               const Link& link = links_.at(slot);
               return regions_.gets_over(link) && rails_[link.rail].traits().reuses_regions;
           });
}

bool BulkPlan::prefers_get(std::uint32_t peer, std::uint64_t bytes) {
    const auto* talk = peers_[peer].talk.get();
    return talk != nullptr && std::ranges::any_of(talk->links, [&](auto slot) {
               const Link& link = links_.at(slot);
               return regions_.gets_over(link) && rails_[link.rail].rail->prefers_get(link.id, bytes);
           });
}

std::uint64_t BulkPlan::unasked(std::uint32_t peer, std::uint64_t bytes, std::uint64_t most, base::Nanoseconds now) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr || talk->links.empty()) return 0;
    ledger_.refresh(*talk, now);
    for (std::size_t i = 0; i < talk->links.size(); ++i) {
        if (policy_.predicts() && talk->candidates[i].spare) continue;  // others know of no spare ones
        const auto& traits = rails_[links_.at(talk->links[i]).rail].traits();
        if (traits.get || traits.copies_puts || traits.by_processors) return 0;
    }
    if (talk->unasked_outstanding()) return 0;  // a stream
    if (bytes <= talk->unasked_max) return bytes;
    const auto place = talk->links.size() == 1 ? 0 : talk->only;
    if (place == Conversation::none) return 0;
    const auto& cost = talk->candidates[place].cost;
    const auto idle = answer_latencies * std::max<sched::Ticks>(cost.latency, 0);
    most = std::min(most, static_cast<std::uint64_t>(idle / std::max<sched::Ticks>(cost.per_byte, 1)));
    return most < bytes / least_unasked ? 0 : most;
}

bool BulkPlan::gets_from(std::uint32_t slot, const BulkTarget& source) {
    const Link& link = links_.at(slot);
    return regions_.gets_over(link) && source.find(link.remote_rail) != nullptr;
}

bool BulkPlan::reaches(std::uint32_t peer, const BulkTarget& target) {
    const auto* talk = peers_[peer].talk.get();
    return talk != nullptr && std::ranges::any_of(talk->links, [&](auto slot) {
               const auto* key = target.find(links_.at(slot).remote_rail);
               return key != nullptr && !key->reserve;
           });
}

std::uint64_t BulkPlan::split_gets(std::uint32_t peer, const BulkTarget& source, std::uint64_t bytes,
                                   base::Nanoseconds now) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr || talk->links.empty()) return 0;
    ledger_.refresh(*talk, now);
    shares_.assign(talk->links.size(), 0);
    policy_.split(talk->candidates, bytes, now, shares_);
    std::uint64_t got = 0, rest = 0;
    for (std::size_t i = 0; i < talk->links.size(); ++i) {
        (gets_from(talk->links[i], source) ? got : rest) += shares_[i];
    }
    if (rest < smallest_share && got > 0) return bytes;
    return got < smallest_share ? 0 : got;
}

void BulkPlan::split(std::uint32_t peer, const BulkTarget& target, std::uint64_t bytes, base::Nanoseconds now,
                     std::vector<RailShare>& shares) {
    shares.clear();
    candidates_.clear();
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    ledger_.refresh(*talk, now);
    for (std::size_t i = 0; i < talk->links.size(); ++i) {
        const Link& link = links_.at(talk->links[i]);
        const auto* key = target.find(link.remote_rail);
        if (key == nullptr || key->reserve) continue;
        candidates_.push_back(talk->candidates[i]);
    }
    if (candidates_.empty()) return;
    if (bytes < 2 * smallest_share) {
        shares.push_back({candidates_[policy_.choose(candidates_, bytes, now)].rail, bytes});
        return;
    }
    shares_.assign(candidates_.size(), 0);
    policy_.split(candidates_, bytes, now, shares_);
    const auto largest = static_cast<std::size_t>(std::max_element(shares_.begin(), shares_.end()) - shares_.begin());
    for (std::size_t i = 0; i < shares_.size(); ++i) {
        if (i != largest && shares_[i] < smallest_share) shares_[largest] += std::exchange(shares_[i], 0);
    }
    for (std::size_t i = 0; i < shares_.size(); ++i) {
        if (shares_[i] > 0) shares.push_back({candidates_[i].rail, shares_[i]});
    }
}

}  // namespace railmux::rails

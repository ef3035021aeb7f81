#include "sched/explain.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sched/vft.hpp"

namespace railmux::sched {

namespace {

double us(Ticks ticks) { return static_cast<double>(ticks) / (ticks_per_ns * base::microsecond); }

/// The place of the least value of `key` over the prospects of those that count; the first of equals.
template <typename Key>
std::size_t least(const Verdict& verdict, std::span<const Candidate> candidates, Key key) {
    std::size_t best = verdict.choice;
    for (std::size_t i = verdict.prospects.size(); i-- > 0;) {
        const bool counts = !candidates[i].spare || candidates[verdict.choice].spare;
        if (counts && key(verdict.prospects[i]) <= key(verdict.prospects[best])) best = i;
    }
    return best;
}

std::string reason_for_split(const Verdict& verdict, std::span<const Candidate> candidates,
                             std::span<const std::string> names, std::size_t used) {
    const auto best = least(verdict, candidates, [](const Prospect& p) { return p.delivery; });
    Ticks end = 0;
    for (const auto& p : verdict.prospects) end = std::max(end, p.share_delivery);
    return fmt::format("split over {} rails, which end together after {:.1f} us; {} alone would take {:.1f} us", used,
                       us(end), names[best], us(verdict.prospects[best].delivery));
}

/// Why `first` was not worth leaving the chosen rail for, though it delivers earlier: the rules of Vft::choose, in their order.
std::string why_not_first(const Verdict& verdict, std::span<const Candidate> candidates, std::size_t first) {
    const auto& chosen = verdict.prospects[verdict.choice];
    const auto gain = chosen.delivery - verdict.prospects[first].delivery;
    const auto margin = VftOptions{}.margin_percent;
    if (candidates[verdict.choice].stream && chosen.share <= light_bytes) {
        if (gain <= chosen.delivery / Vft::joined_part) {
            return fmt::format(
                "which is not more than the 1/{} for which a light frame leaves a stream that it can join",
                Vft::joined_part);
        }
    } else if (gain <= chosen.delivery / 100 * margin) {
        return fmt::format("which is below the margin of {} %", margin);
    }
    if (candidates[first].stream && !candidates[first].joins) return "which does not pay for a call of its own there";
    return "by what is known now";  // it was decided by less
}

/// Of one rail that takes all of it, by a policy that compares deliveries.
std::string reason_for_one(const Verdict& verdict, std::span<const Candidate> candidates,
                           std::span<const std::string> names) {
    const auto& chosen = verdict.prospects[verdict.choice];
    const auto first = least(verdict, candidates, [](const Prospect& p) { return p.delivery; });
    const auto fastest = least(verdict, candidates, [](const Prospect& p) { return p.delivery - p.wait; });
    if (verdict.favoured) {
        return "one of the ends does not keep up, and messages fared best over it, or it is tried";
    }
    if (verdict.spread != Spread::predicted) {
        return fmt::format("bursts like it fare best {}, or that is tried", to_string(verdict.spread));
    }
    if (candidates[verdict.choice].behind && chosen.share <= light_bytes) {
        return fmt::format(
            "one of the ends does not keep up, and {} bytes would be there first over it, whatever waits",
            Vft::behind_bytes);
    }
    if (verdict.rested) {
        return std::any_of(candidates.begin(), candidates.end(), [](const auto& c) { return c.saves_up || c.bounded; })
                   ? "it has rested for longest: such rails pass more at once for what they have not used"
                   : "it has rested for longest, and idle it is about as fast as others";
    }
    if (verdict.choice != first) {
        const auto* const preferred = verdict.choice == fastest
                                          ? "fastest when idle"
                                          : "the peer used it last, and idle it is about as fast as others";
        return fmt::format("{}; {} would deliver {:.1f} us earlier, {}", preferred, names[first],
                           us(chosen.delivery - verdict.prospects[first].delivery),
                           why_not_first(verdict, candidates, first));
    }
    if (verdict.choice == fastest) return "delivers first, and would if all rails were idle";
    const auto& idle = verdict.prospects[fastest];
    return fmt::format("{} would be fastest when idle, but is busy for {:.1f} us: {:.1f} us are gained", names[fastest],
                       us(idle.wait), us(idle.delivery - chosen.delivery));
}

}  // namespace

Verdict weigh(const Policy& policy, std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
              std::size_t choice) {
    Verdict verdict{.choice = choice};
    for (const auto& candidate : candidates) {
        const auto delivery = policy.delivery(candidate, bytes, now);
        const auto idle = candidate.cost.latency + times(bytes, candidate.cost.slope);
        verdict.prospects.push_back({.wait = std::max<Ticks>(delivery - idle, 0), .delivery = delivery});
    }
    auto& chosen = verdict.prospects[choice];
    chosen.share = bytes;
    chosen.share_delivery = chosen.delivery;
    const auto& candidate = candidates[choice];
    const bool along = place_along(candidates, bytes) == choice && verdict.prospects[choice].wait <= Vft::longest_along;
    const bool favoured = candidate.favoured_heavy || (candidate.favoured_light && bytes <= light_bytes);
    verdict.favoured = favoured && !along && !candidate.spare && bytes <= heavy_bytes;
    const bool spread = along || (!verdict.favoured && bytes > light_bytes && bytes <= heavy_bytes);
    const bool known = candidate.spread != Spread::by_rate || turns_known(candidates);
    if (spread && known) verdict.spread = candidate.spread;
    verdict.rested =
        !verdict.favoured && verdict.spread == Spread::predicted && choice == policy.most_rested(candidates, bytes);
    return verdict;
}

Verdict judge(const Policy& policy, std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
              bool divisible) {
    const auto copy = policy.clone();
    if (!divisible) return weigh(policy, candidates, bytes, now, copy->choose(candidates, bytes, now));
    std::vector<std::uint64_t> shares(candidates.size(), 0);
    copy->split(candidates, bytes, now, shares);
    const auto most = static_cast<std::size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
    auto verdict = weigh(policy, candidates, bytes, now, most);
    verdict.favoured = verdict.rested = false;
    verdict.spread = Spread::predicted;
    for (std::size_t i = 0; i < shares.size(); ++i) {
        auto& prospect = verdict.prospects[i];
        const auto& cost = candidates[i].cost;
        prospect.wait += times(candidates[i].claimed, cost.per_byte);
        // It goes in pieces, one while the one before is on its way: nothing but G grows with the size.
        const auto of = [&](std::uint64_t part) { return prospect.wait + cost.latency + times(part, cost.per_byte); };
        prospect.delivery = of(bytes);
        prospect.share = shares[i];
        prospect.share_delivery = shares[i] == 0 ? 0 : of(shares[i]);
    }
    return verdict;
}

void leave_whole(Verdict& verdict, std::uint64_t bytes) {
    for (auto& prospect : verdict.prospects) {
        prospect.share = 0;
        prospect.share_delivery = 0;
    }
    auto& chosen = verdict.prospects[verdict.choice];
    chosen.share = bytes;
    chosen.share_delivery = chosen.delivery;
}

std::string reason_for_whole(const Division::Preference& preference) {
    return fmt::format(
        "alone, messages of that size took {} % less time so than divided as planned, when that was tried",
        preference.gain_percent);
}

std::string reason(const Policy& policy, const Verdict& verdict, std::span<const Candidate> candidates,
                   std::span<const std::string> names) {
    if (candidates.size() == 1) return "there is no other rail";
    if (!policy.predicts()) return fmt::format("the policy {} does not compare deliveries", policy.name());
    if (std::ranges::count(candidates, false, &Candidate::spare) == 1) return "all others are spare";
    const auto used = static_cast<std::size_t>(std::count_if(verdict.prospects.begin(), verdict.prospects.end(),
                                                             [](const Prospect& p) { return p.share > 0; }));
    return used > 1 ? reason_for_split(verdict, candidates, names, used) : reason_for_one(verdict, candidates, names);
}

}  // namespace railmux::sched

#include "sched/vft.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>

namespace railmux::sched {

namespace {
constexpr std::uint64_t same_size_bytes = 1024;
// Latencies that differ by less are the same: that is how late one looks.
constexpr Ticks same_latency = to_ticks(base::microsecond);

// To look where one did not look before takes no more than a twentieth of that.
constexpr Ticks worth_resting = to_ticks(20 * base::microsecond);
// This part of its time later a message may come over a rail that is about as fast.
constexpr Ticks rested_part = 64;
// The same where rails were seen to save up what they do not use, or may do so: that gains half of the time.
constexpr Ticks worth_saving_up = to_ticks(5 * base::microsecond);
constexpr Ticks saving_part = 8;

// So many messages a rail may have been left out for until it takes turns again.
constexpr Ticks turns_saved = 4;

// Of a split: a header and a closing frame come with each share.
constexpr std::uint64_t least_share = 1024;
// A put, that frame and its answer take the two processors about so long above any transport. Probes that met traffic have
// found gaps of nothing, and so may a rate that was learnt too low (Pace::correct): then 1 KiB seemed to be worth any rail.
constexpr Ticks least_gap = to_ticks(base::Nanoseconds{250});
// How far back the mix of small and large messages counts for what a byte of backlog costs.
constexpr std::uint64_t mix_bytes = 64 * 1024;

/// Of a frame of so many bytes: where there are heavy ones, a light one goes along. Out of line: rare, and choose() is not.
[[gnu::noinline]] std::size_t favoured(std::span<const Candidate> candidates, std::uint64_t bytes) noexcept {
    const auto place = place_of(candidates, &Candidate::favoured_heavy);
    return place == candidates.size() && bytes <= light_bytes ? place_of(candidates, &Candidate::favoured_light)
                                                              : place;
}
}  // namespace

inline Ticks Vft::idle_delivery(const Cost& cost, std::uint64_t bytes) const noexcept {
    if (options_.stage == VftStage::overlap_aware) [[likely]]
        return cost.latency + times(bytes, cost.slope);
    return idle_delivery_by_less(cost, bytes);
}

Ticks Vft::idle_delivery_by_less(const Cost& cost, std::uint64_t bytes) const noexcept {
    switch (options_.stage) {
        case VftStage::same_size: return times(same_size_bytes, cost.per_byte);
        case VftStage::size_aware: return times(bytes, cost.per_byte);
        case VftStage::pause_aware: return cost.gap + times(bytes, cost.per_byte);
        default: return cost.latency + times(bytes, cost.per_byte);
    }
}

Ticks Vft::gap(const Cost& cost) const noexcept { return options_.stage < VftStage::pause_aware ? 0 : cost.gap; }

/// How long until the rail is free: what its clock says, or what is known to be on it, whichever is less. The clock never
/// stands behind now.
inline Ticks Vft::wait(const Candidate& candidate, Ticks now) const noexcept {
    if (candidate.backlog == 0) return 0;
    const auto& clock = clocks_[candidate.rail];
    // The backlog is known in bytes, but small messages take their gaps: these are spread over the bytes.
    const auto known = times(candidate.backlog, candidate.cost.per_byte + clock.gap_per_byte);
    const auto predicted = std::min(std::max<Ticks>(clock.free - now, 0), known);
    // A rail that has been silent for longer than acknowledgements take is slower than thought; what has lasted so long is
    // expected to last as long again.
    if (candidate.silent <= acknowledged_within) return predicted;
    return std::max(predicted, to_ticks(candidate.silent - acknowledged_within) - 2 * candidate.cost.latency);
}

Ticks Vft::delivery(const Candidate& candidate, std::uint64_t bytes, base::Nanoseconds now) const noexcept {
    return wait(candidate, ticks(now)) + idle_delivery(candidate.cost, bytes);
}

/// Of rails that are about equal, the one that both sides look at already: what is not looked at is not polled.
inline Ticks Vft::preferred_by(const Candidate& candidate, Ticks idle) const noexcept {
    return candidate.recent ? margin(idle) + same_latency : 0;
}

/// For a heavy message, of the rails that are about as fast as the fastest, if all of these are idle, the one that has been so
/// for longest. Rails that save up what they do not use (SavedUp) pass half of such messages at once, if they get them in turn.
/// Those that have passed all bursts at once so far, of which no rate is known, may be such. Elsewhere it costs a look where
/// one did not look before.
std::size_t Vft::most_rested(std::span<const Candidate> candidates, std::uint64_t bytes) const noexcept {
    const auto none = candidates.size();
    if (bytes <= light_bytes || options_.stage != VftStage::overlap_aware) return none;
    auto fastest = none;
    auto least = std::numeric_limits<Ticks>::max();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto idle = idle_delivery(candidates[i].cost, bytes);
        if (candidates[i].spare || idle >= least) continue;
        fastest = i;
        least = idle;
    }
    if (fastest == none) return none;
    const auto lasts = times(bytes, candidates[fastest].cost.per_byte);
    if (lasts < worth_saving_up) return none;
    // What is seen of one of them goes for those that are about as fast: one that is used less shows less.
    const bool saves_up = std::ranges::any_of(candidates, [&](const Candidate& candidate) {
        const bool may = (candidate.saves_up || candidate.bounded) && !candidate.spare;
        return may && idle_delivery(candidate.cost, bytes) <= least + least / saving_part;
    });
    if (!saves_up && lasts < worth_resting) return none;
    const auto most = least + least / (saves_up ? saving_part : rested_part);
    auto rested = fastest;
    bool several = false;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto& candidate = candidates[i];
        if (candidate.spare || idle_delivery(candidate.cost, bytes) > most) continue;
        if (candidate.backlog > 0) return none;
        several = several || i != fastest;
        if (clocks_[candidate.rail].free < clocks_[candidates[rested].rail].free) rested = i;
    }
    return several ? rested : none;
}

/// Of heavy frames that leave in bursts of their own: as they are found to fare best, or as is tried.
std::size_t Vft::spread_out(std::span<const Candidate> candidates, std::uint64_t bytes) noexcept {
    switch (candidates.front().spread) {
        case Spread::by_rate:
            return turns_known(candidates) ? next_in_turn(candidates, bytes, true) : candidates.size();
        case Spread::in_turn: return next_in_turn(candidates, bytes, false);
        case Spread::single: return fastest_alone(candidates, bytes);
        default: return candidates.size();
    }
}

/// Weighted fair queuing, with what a byte takes as weights, or equal ones. What a rail was not given counts for no more than
/// the slowest one takes for some messages.
std::size_t Vft::next_in_turn(std::span<const Candidate> candidates, std::uint64_t bytes, bool by_rate) noexcept {
    const auto given = [&](const Candidate& candidate) -> std::uint64_t& {
        auto& clock = clocks_[candidate.rail];
        return by_rate ? clock.time_given : clock.bytes_given;
    };
    const auto takes = [&](const Candidate& candidate) { return times(bytes, by_rate ? candidate.turn : 1); };
    const auto begin = given(candidates.front());
    const auto ahead = [&](const Candidate& candidate) { return static_cast<Ticks>(given(candidate) - begin); };
    auto most = std::numeric_limits<Ticks>::min();
    Ticks longest = 0;
    for (const auto& candidate : candidates) {
        if (candidate.spare) continue;
        most = std::max(most, ahead(candidate));
        longest = std::max(longest, takes(candidate));
    }
    auto next = candidates.size();
    auto least = std::numeric_limits<Ticks>::max();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto& candidate = candidates[i];
        if (candidate.spare) continue;
        const auto counts = std::max(ahead(candidate), most - turns_saved * longest);
        given(candidate) = begin + static_cast<std::uint64_t>(counts);
        if (counts + takes(candidate) >= least) continue;
        next = i;
        least = counts + takes(candidate);
    }
    return next;
}

/// Of those that are about as fast the one that the peer's last frame came over, if we are who follows: both sides look there,
/// and its kernel acknowledges with what answers. Else the one that was used last.
std::size_t Vft::fastest_alone(std::span<const Candidate> candidates, std::uint64_t bytes) const noexcept {
    auto fastest = candidates.size();
    auto least = std::numeric_limits<Ticks>::max();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto delivery = idle_delivery(candidates[i].cost, bytes);
        if (candidates[i].spare || delivery >= least) continue;
        fastest = i;
        least = delivery;
    }
    for (const auto preferred : {&Candidate::recent, &Candidate::last_heavy}) {
        const auto place = place_of(candidates, preferred);
        if (place == candidates.size()) continue;
        if (idle_delivery(candidates[place].cost, bytes) <= least + least / saving_part) return place;
    }
    return fastest;
}

/// A post that the fastest rail would not have needed takes the sender's CPU for a gap, in which it hands over nothing else. As
/// many messages as the gain lasts for go with it, and each relieves the fastest rail of what it takes there.
Ticks Vft::post_of_its_own(const Candidate& first, const Cost& fastest, std::uint64_t bytes) const noexcept {
    if (!first.stream || first.joins) return 0;
    const auto lost = gap(first.cost) - times(bytes, fastest.per_byte);
    if (lost <= 0) return 0;
    const auto along = lost / std::max<Ticks>(fastest.per_byte, 1);
    return lost + times(static_cast<std::uint64_t>(along), first.cost.per_byte);
}

/// What a message of `bytes` waits for on the way: what waits for the destination anyway it may as well join.
inline Ticks Vft::wait_of(const Candidate& candidate, std::uint64_t bytes, Ticks now) const noexcept {
    return candidate.behind && bytes <= light_bytes ? 0 : wait(candidate, now);
}

std::size_t Vft::choose(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now) noexcept {
    const bool behind = candidates.front().behind;  // as all of them are
    const auto now_ticks = ticks(now);
    if (const auto along = place_along(candidates, bytes); along < candidates.size()) [[unlikely]] {
        if (wait(candidates[along], now_ticks) <= longest_along) return along;
    }
    if (behind && bytes <= heavy_bytes) {
        if (const auto place = favoured(candidates, bytes); place < candidates.size()) return place;
    }
    const bool joined = behind && bytes <= light_bytes;
    const auto idle_bytes = joined ? behind_bytes : bytes;
    // The fastest rail, were all idle, is left only for a clear gain: predictions are not that good, and messages that
    // stay on one rail need no reordering.
    if (candidates.front().spread != Spread::predicted && bytes > light_bytes && bytes <= heavy_bytes) [[unlikely]] {
        if (const auto place = spread_out(candidates, bytes); place < candidates.size()) return place;
    }
    if (const auto rested = most_rested(candidates, bytes); rested < candidates.size()) return rested;
    constexpr auto never = std::numeric_limits<Ticks>::max();
    std::size_t fastest = 0;
    std::size_t first = 0;
    Ticks fastest_idle = never;
    Ticks fastest_delivery = 0;
    Ticks first_delivery = never;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto& candidate = candidates[i];
        if (candidate.spare) continue;  // where all are, the first is as good as any
        const auto delivery = idle_delivery(candidate.cost, idle_bytes);
        const auto idle = delivery - preferred_by(candidate, delivery);
        if (idle >= fastest_idle && delivery >= first_delivery) continue;  // however short it waits
        const auto delivered = joined ? delivery : delivery + wait(candidate, now_ticks);
        if (idle < fastest_idle) {
            fastest = i;
            fastest_idle = idle;
            fastest_delivery = delivered;
        }
        if (delivered < first_delivery) {
            first = i;
            first_delivery = delivered;
        }
    }
    // What is small joins what waits to leave over a stream, and is delivered after that: to arrive before it gains nothing,
    // and to arrive behind it, over another rail that is slower than thought, holds up all that follows. While both rails
    // have enough to do a wide margin costs nothing.
    const auto gain = fastest_delivery - first_delivery;
    const bool joins = candidates[fastest].stream && bytes <= light_bytes;
    if (gain <= (joins ? fastest_delivery / joined_part : margin(fastest_delivery))) return fastest;
    return gain > post_of_its_own(candidates[first], candidates[fastest].cost, bytes) ? first : fastest;
}

/// Of heavy messages of at most `bytes`: whether they go to the rail of `place`, or may not, however long queues are. Nothing:
/// that depends on them.
std::optional<bool> Vft::settled(std::span<const Candidate> candidates, std::size_t place,
                                 std::uint64_t bytes) const noexcept {
    if (candidates.front().behind) {
        if (const auto one = favoured(candidates, bytes); one < candidates.size()) return one == place;
    }
    constexpr auto least = light_bytes + 1;
    const auto both = [&](auto holds) { return holds(least) && holds(bytes); };
    switch (candidates.front().spread) {
        case Spread::single: return both([&](auto size) { return fastest_alone(candidates, size) == place; });
        case Spread::predicted: break;
        default: return false;  // the next one goes to another
    }
    if (both([&](auto size) { return most_rested(candidates, size) == candidates.size(); })) return std::nullopt;
    return false;
}

/// How long `chosen` may take for `bytes` until choose() prefers `other`, were that idle. `fastest`: all messages take longer
/// over that one, were both idle.
Ticks Vft::patience(const Candidate& chosen, const Candidate& other, std::uint64_t bytes, bool fastest) const noexcept {
    const auto idle = idle_delivery(other.cost, bytes);
    if (!fastest) return idle - preferred_by(other, idle);
    return idle + (chosen.stream && bytes <= light_bytes ? idle / (joined_part - 1) : margin(idle));
}

/// Until its queue is so long that another might be preferred: so long it is the fastest, and the first. Both sides of that
/// grow with the size by as much for each byte: what holds for nothing and for the largest holds for all. Between ends of which
/// one does not keep up it is so however long the queue is.
Ticks Vft::lead(std::span<const Candidate> candidates, std::size_t place, std::uint64_t bytes,
                base::Nanoseconds now) const noexcept {
    const auto& chosen = candidates[place];
    if (chosen.spare) return 0;
    auto left = std::numeric_limits<Ticks>::max();
    if (const auto along = place_along(candidates, bytes); along < candidates.size()) {
        const auto waits = wait(candidates[along], ticks(now));
        if (waits <= longest_along) return along == place ? longest_along - waits : 0;
    }
    const bool heavy = bytes > light_bytes;
    if (chosen.behind && !heavy) return left;
    if (heavy) {
        if (const auto goes = settled(candidates, place, bytes)) return *goes ? left : 0;
    }
    const auto least = heavy ? light_bytes + 1 : 0;
    const auto preferred = [&](const Candidate& candidate, std::uint64_t size) {
        const auto idle = idle_delivery(candidate.cost, size);
        return idle - preferred_by(candidate, idle);
    };
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto& other = candidates[i];
        if (i == place || other.spare) continue;
        const auto first = [&](std::uint64_t size) {  // as choose() finds it: of equals the one whose place is first
            const auto own = preferred(chosen, size);
            const auto others = preferred(other, size);
            return own < others || (own == others && place < i);
        };
        const bool fastest = first(least) && first(bytes);
        for (const auto size : {least, bytes}) {
            // A model may have a latency below nought.
            const auto own = std::max<Ticks>(idle_delivery(chosen.cost, size), 0);
            left = std::min(left, patience(chosen, other, size, fastest) - own);
        }
    }
    return std::max<Ticks>(left - wait_of(chosen, bytes, ticks(now)) - 1, 0);
}

void Vft::charge(const Candidate& candidate, std::uint64_t bytes, std::uint32_t messages,
                 base::Nanoseconds now) noexcept {
    auto& clock = clocks_[candidate.rail];
    const auto start = ticks(now) + wait(candidate, ticks(now));
    const auto counted = options_.stage == VftStage::same_size ? messages * same_size_bytes : bytes;
    const auto leaving = candidate.stream ? (candidate.joins ? 0U : 1U) : messages;
    const auto gaps = static_cast<Ticks>(leaving) * gap(candidate.cost);
    clock.free = start + gaps + times(counted, candidate.cost.per_byte);
    if (candidate.spread == Spread::by_rate)
        clock.time_given += static_cast<std::uint64_t>(times(counted, candidate.turn));
    clock.bytes_given += counted;
    if (candidate.backlog == 0) clock.gaps = 0, clock.bytes = 0;
    clock.gaps += gaps;
    clock.bytes += std::max<std::uint64_t>(bytes, 1);
    clock.gap_per_byte = clock.gaps / static_cast<Ticks>(clock.bytes);
    if (clock.bytes > mix_bytes) clock.gaps /= 2, clock.bytes /= 2;
}

/// What is behind that is still to be done. A clock that once went too slowly, as G was not known yet, would stay behind for as
/// long as the rail is never idle.
void Vft::left(const Candidate& candidate, std::uint64_t backlog, base::Nanoseconds then) noexcept {
    auto& clock = clocks_[candidate.rail];
    clock.free = std::max(clock.free, ticks(then) + times(backlog, candidate.cost.per_byte + clock.gap_per_byte));
}

/// A share is worth a rail's while if it takes much longer than the gap that comes with it: a sixteenth is lost.
std::uint64_t Vft::smallest_share(const Cost& cost) const noexcept {
    const auto gap = std::max(cost.gap, least_gap);
    const auto efficient = static_cast<std::uint64_t>(16 * gap / std::max<Ticks>(cost.per_byte, 1));
    return std::min(std::max(efficient, least_share), options_.smallest_share);
}

void Vft::split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
                std::span<std::uint64_t> shares) noexcept {
    std::fill(shares.begin(), shares.end(), 0);
    water_.clear();
    const bool all_spare = std::ranges::all_of(candidates, &Candidate::spare);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto& c = candidates[i];
        if (c.spare && !all_spare) continue;
        const auto before = wait(c, ticks(now)) + times(c.claimed, c.cost.per_byte);
        water_.add(i, before + c.cost.latency, c.cost.per_byte, smallest_share(c.cost));
    }
    const auto end = water_.fill(bytes);
    // Without a clear gain all of it stays on one rail, as in choose.
    const auto single = water_.best_single(bytes);
    if (end * 100 > single.end * (100 - options_.margin_percent)) {
        shares[single.place] = bytes;
    } else {
        water_.pour(bytes, shares);
    }
}

}  // namespace railmux::sched

// Policy: which rail takes a message, and how a large one is split over the rails.
//
// Pure: no sockets, no threads, no clock of its own; time is an argument, so that the same object runs inside a process,
// in unit tests under a fake clock, and in the simulator.
// Threads: one thread at a time per object; a context has one policy for all its peers, because they share its rails.
// Lifetime: owned by the context.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "sched/spread.hpp"
#include "sched/ticks.hpp"

namespace railmux::sched {

/// What a message costs on a link, by its LogGP model (include/railmux/loggp.hpp), as straight lines:
///   delivery = latency + s * slope    from the start of its sending, on an idle rail
///   rail     = gap + s * per_byte     until the rail can start the next one
struct Cost {
    Ticks latency = 0;   // L + o_s + o_r of a message of nothing
    Ticks slope = 0;     // G and what else grows with the size
    Ticks gap = 0;       // g
    Ticks per_byte = 0;  // G
    friend bool operator==(const Cost&, const Cost&) = default;
};

// Messages up to this size, headers included, are small: on the slowest rails, too, their bytes take less than the rest.
inline constexpr std::uint64_t small_bytes = 256;
// Up to this size, headers included, they are light: a bundle of the smallest is such a frame. Where they go is not worth a
// choice for each, nor is it asked for each whether it has arrived. Frames of 1 KiB are what fills a rail: as light ones they
// were known too late to wait there (docs/scheduling-figures.md).
inline constexpr std::uint64_t light_bytes = 512;
// Others are heavy, up to the longest that goes without being asked for (eager.max and headers).
inline constexpr std::uint64_t heavy_bytes = 16 * 1024 + 512;

// A peer that is not busy elsewhere acknowledges within that: acknowledgements are kept back for up to 100 us, and looked for
// between other things.
inline constexpr base::Nanoseconds acknowledged_within = 250 * base::microsecond;

/// A link that could carry the message, as the policy sees it.
struct Candidate {
    std::uint32_t rail = 0;       // local rail, the same number whatever the destination
    std::uint64_t speed_bps = 0;  // link speed; 0: unknown
    Ticks nominal = 0;            // what a byte takes by that (nominal_per_byte), divided once; 0: unknown
    Cost cost{};
    std::uint64_t backlog = 0;     // bytes handed to this rail, by whomever to whomever, and not acknowledged
    base::Nanoseconds silent = 0;  // nothing of that has been acknowledged for so long
    bool stream = false;           // what is handed to it together leaves as one, after one gap
    bool joins = false;            // ... and something waits to leave now
    bool behind = false;           // one of the two ends does not keep up: what waits waits for it, whatever the rail
    bool favoured_light = false;   // ... and light frames fared best over it, or it is tried
    bool favoured_heavy = false;   // ... and heavy ones did
    Spread spread = Spread::predicted;  // of heavy frames to its destination, which is what fared best, or is tried
    bool last_heavy = false;            // the last of these went by it,
    bool with_heavy = false;            // ... or by another one, a moment ago: light frames belong to the same bursts
    Ticks turn = 0;                     // ... by_rate: what a byte takes, for that (RateTurns)
    Ticks first_turn = 0;               // ... when it began
    // What a byte takes, as traffic has shown: ours, or the peer's over the same link; 0: nothing has (suppose_rates).
    Ticks shown = 0;
    bool supposed = false;       // ... which is not sure: nominal speeds may count instead
    bool by_processors = false;  // the processors of the two ends move its bytes, and nothing else does
    bool spare = false;          // adds nothing to the others, with which it shares a bottleneck
    bool saves_up = false;       // lately more passed at once than it carries in that time: what it had not used before
    bool bounded = false;        // its G is what bursts took at most: they show no more the shorter they are
    bool recent = false;         // the destination's last frame came over it: both sides are looking there
    std::uint32_t heavy_received = 0;  // heavy frames of the destination's that it brought; wraps around
    Ticks latency_bound = 0;           // the latency of its link is no more, by what traffic took; 0: nobody knows
    std::uint64_t claimed = 0;         // bytes that other destinations' large messages will still bring; split only
};

/// The place of the one that is so, and not spare; as many as there are: none.
[[nodiscard]] inline std::size_t place_of(std::span<const Candidate> candidates, bool Candidate::*so) noexcept {
    const auto is = [&](const Candidate& candidate) { return candidate.*so && !candidate.spare; };
    return static_cast<std::size_t>(std::ranges::find_if(candidates, is) - candidates.begin());
}

/// Of a light frame of bursts that fare best over one rail: the place of that, which its heavy ones take; as many as there are:
/// it is none.
[[nodiscard]] inline std::size_t place_along(std::span<const Candidate> candidates, std::uint64_t bytes) noexcept {
    const auto& any = candidates.front();  // as all of them are
    const bool along = any.spread == Spread::single && any.with_heavy && bytes <= light_bytes;
    return along ? place_of(candidates, &Candidate::last_heavy) : candidates.size();
}

/// The place of the one that is not spare, if there is one only.
[[nodiscard]] inline std::uint32_t only_choice(std::span<const Candidate> candidates) noexcept {
    constexpr auto none = ~std::uint32_t{0};
    auto only = none;
    for (std::uint32_t i = 0; i < candidates.size(); ++i) {
        if (candidates[i].spare) continue;
        if (only != none) return none;
        only = i;
    }
    return only;
}

/// Whether there are rates for turns to go by, of all rails that count.
[[nodiscard]] inline bool turns_known(std::span<const Candidate> candidates) noexcept {
    return std::ranges::all_of(candidates, [](const auto& each) { return each.spare || each.turn > 0; });
}

/// What a byte takes at the nominal speed; 0: nobody knows that.
[[nodiscard]] constexpr Ticks nominal_per_byte(std::uint64_t speed_bps) noexcept {
    return speed_bps == 0 ? 0 : std::max<Ticks>(to_ticks(8 * base::second) / static_cast<Ticks>(speed_bps), 1);
}

/// Rails of which traffic has shown nothing for sure count as they say of themselves, or as the user does, if they differ: with
/// the same for all, turns by rate would be equal turns. Where traffic took twice as long over any of them, they are wrong, and
/// where it seems to take four times as long, they may be.
inline void suppose_rates(std::span<Candidate> candidates) noexcept {
    constexpr auto none = std::numeric_limits<Ticks>::max();
    auto least = none;
    Ticks most = 0;
    for (const auto& candidate : candidates) {
        if (candidate.spare) continue;
        const auto nominal = candidate.nominal;
        if (nominal == 0 || candidate.shown > (candidate.supposed ? 4 : 2) * nominal) return;
        least = std::min(least, nominal);
        most = std::max(most, nominal);
    }
    if (least == none || most <= least) return;
    for (auto& candidate : candidates) {
        if (candidate.supposed && !candidate.spare) candidate.shown = candidate.nominal;
    }
}

/// Whether there are such rates: what probes or bursts see of rails that pass bursts at once is none.
[[nodiscard]] inline bool rates_shown(std::span<const Candidate> candidates) noexcept {
    return std::ranges::all_of(candidates, [](const auto& each) { return each.spare || each.shown > 0; });
}
/// Whether some of them are not sure.
[[nodiscard]] inline bool rates_supposed(std::span<const Candidate> candidates) noexcept {
    return std::ranges::any_of(candidates, [](const auto& each) { return !each.spare && each.supposed; });
}

class Policy {
public:
    virtual ~Policy() = default;
    Policy() = default;
    Policy& operator=(const Policy&) = delete;

    [[nodiscard]] virtual std::string_view name() const noexcept = 0;

    /// The place in `candidates` (never empty) of the rail that takes a message of `bytes`.
    [[nodiscard]] virtual std::size_t choose(std::span<const Candidate> candidates, std::uint64_t bytes,
                                             base::Nanoseconds now) noexcept = 0;

    /// The place of the one that choose() takes for a message of `bytes` because it has rested for longest, whether or not it
    /// delivers first; candidates.size(): that does not count.
    [[nodiscard]] virtual std::size_t most_rested(std::span<const Candidate> candidates,
                                                  [[maybe_unused]] std::uint64_t bytes) const noexcept {
        return candidates.size();
    }

    /// How much, in the time that it takes, may be handed to the rail of `place`, which choose() has just returned for at most
    /// `bytes`, until another might be chosen for a message of at most as many, and of heavy `bytes` for a heavy one; 0: each
    /// message needs a choice of its own.
    [[nodiscard]] virtual Ticks lead([[maybe_unused]] std::span<const Candidate> candidates,
                                     [[maybe_unused]] std::size_t place, [[maybe_unused]] std::uint64_t bytes,
                                     [[maybe_unused]] base::Nanoseconds now) const noexcept {
        return 0;
    }

    /// How many of `bytes` each candidate carries; `shares` is as long as `candidates` and adds up to `bytes`.
    virtual void split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
                       std::span<std::uint64_t> shares) noexcept = 0;

    /// Whether what is left of a large message is split anew as it goes, or as it was planned at its beginning.
    [[nodiscard]] virtual bool replans() const noexcept { return false; }

    /// All but the last `backlog` bytes of what was handed to the rail had left it by `then`. For policies that predict.
    virtual void left([[maybe_unused]] const Candidate& candidate, [[maybe_unused]] std::uint64_t backlog,
                      [[maybe_unused]] base::Nanoseconds then) noexcept {}
    /// `bytes` in so many messages have been handed to the candidate's rail, by us or by others.
    virtual void charge([[maybe_unused]] const Candidate& candidate, [[maybe_unused]] std::uint64_t bytes,
                        [[maybe_unused]] std::uint32_t messages, [[maybe_unused]] base::Nanoseconds now) noexcept {}
    void charge(const Candidate& candidate, std::uint64_t bytes, base::Nanoseconds now) noexcept {
        charge(candidate, bytes, 1, now);
    }

    /// Whether decisions rest on `delivery`.
    [[nodiscard]] virtual bool predicts() const noexcept { return false; }

    /// When a message of `bytes` handed over now would be delivered, after `now`. A policy that does not predict says what its
    /// rail's cost and backlog come to, so that its choices can be judged, too.
    [[nodiscard]] virtual Ticks delivery(const Candidate& candidate, std::uint64_t bytes,
                                         [[maybe_unused]] base::Nanoseconds now) const noexcept {
        return times(candidate.backlog, candidate.cost.per_byte) + candidate.cost.latency +
               times(bytes, candidate.cost.slope);
    }

    /// Another in the same state, to be asked what this one would do.
    [[nodiscard]] virtual std::unique_ptr<Policy> clone() const = 0;

protected:
    Policy(const Policy&) = default;
};

/// The policy with that name (policy_names) for a process with `rails` local rails; it is told of no time before `begin`.
/// Throws Error(invalid_config) for an unknown name.
[[nodiscard]] std::unique_ptr<Policy> make_policy(std::string_view name, std::size_t rails,
                                                  base::Nanoseconds begin = 0);

inline constexpr std::string_view policy_names = "vft|wfq|weighted_round_robin|round_robin|fixed";

}  // namespace railmux::sched

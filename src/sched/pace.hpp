// Pace: the rate at which a rail serves a backlog, from acknowledgements. Echo: the latency of a link.
//
// From one acknowledgement to the next a rail that has a backlog before and after delivers as fast as it can: bytes over time
// is its rate. Times without a backlog, or before the first acknowledgement of a busy period, are latency or the sender's own
// pace and do not count, so that neither queueing nor an idle sender is learnt as low bandwidth; nor does a backlog that was
// none, but acknowledgements that nobody had looked for. Times are added up over windows long enough for the grain of
// acknowledgements and for the bursts that networks pass; the median of the last three windows is the rate, so that a peer
// that was away for a moment does not look like a slow rail.
//
// A large message on an idle rail shows the rate, too, by its time less the latency: that is added to the window.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>

#include "sched/ticks.hpp"

namespace railmux::sched {

class Pace {
public:
    /// `bytes` are handed to the rail.
    void sent(std::uint64_t bytes, base::Nanoseconds now) noexcept;
    /// They arrived. Several may arrive at once; settle then says that these were all.
    void delivered(std::uint64_t bytes) noexcept {
        assert(backlog_ >= bytes);
        pending_ += bytes;
        backlog_ -= bytes;
    }
    /// A message of `bytes`, the only one on the rail, took so long besides the latency; `thought` is the G that the policy
    /// went by. Both sides look now and then only: what differs by less than that confirms what was thought.
    void lone(std::uint64_t bytes, base::Nanoseconds service, Ticks thought, base::Nanoseconds busy) noexcept;
    void settle(base::Nanoseconds now, base::Nanoseconds busy) noexcept {
        if (pending_ > 0) account(now, busy);
    }
    /// They never will, over this rail.
    void lost(std::uint64_t bytes) noexcept {
        assert(backlog_ >= bytes);
        backlog_ -= bytes;
    }

    [[nodiscard]] std::uint64_t backlog() const noexcept { return backlog_; }
    /// For how long nothing has come through although there is a backlog; all that had come by `looked` is known. That
    /// nobody looked since says nothing of the rail.
    [[nodiscard]] base::Nanoseconds silent(base::Nanoseconds looked) const noexcept {
        return backlog_ == 0 ? 0 : std::max<base::Nanoseconds>(looked - last_, 0);
    }
    /// G as it was last learnt; 0 while unknown.
    [[nodiscard]] Ticks per_byte() const noexcept { return per_byte_; }
    /// G to go by; 0 while unknown. `busy` is a clock that stands while there is no traffic on any rail. What others were
    /// preferred to for long is thought better and better of, as far as `prior`, until it is tried again.
    [[nodiscard]] Ticks per_byte(base::Nanoseconds busy, Ticks prior) const noexcept {
        if (!aged(busy)) return per_byte_;
        const auto halvings = std::min<base::Nanoseconds>((busy - learnt_) / half_life - 1, 62);
        return std::max(per_byte_ >> halvings, std::clamp<Ticks>(prior, 1, per_byte_));
    }
    /// How much may be on the rail while its rate is not known for sure: twice what is known to have gone through since it
    /// was last idle, as TCP's slow start does; little, if it is only tried again.
    [[nodiscard]] std::uint64_t allowance(base::Nanoseconds busy) const noexcept {
        return (aged(busy) ? trial_bytes : first_allowance) + 2 * busy_bytes_;
    }

private:
    static constexpr std::uint64_t first_allowance = 256 * 1024;
    // A rail ten times as slow as others is tried about twice a second, which costs the time of a small piece each.
    static constexpr base::Nanoseconds half_life = 100 * base::millisecond;
    static constexpr std::uint64_t trial_bytes = 16 * 1024;
    // Idle for longer than acknowledgements and moments of absence take: the network may have changed.
    static constexpr base::Nanoseconds idle_time = 10 * base::millisecond;
    // A backlog is what keeps a rail busy until long after the next acknowledgement, which may be kept back for 100 us.
    static constexpr base::Nanoseconds backlog_time = 250 * base::microsecond;
    static constexpr std::uint64_t backlog_bytes = 32 * 1024;
    // A window; the first one is short, because what is known before it is a guess.
    static constexpr base::Nanoseconds window_time = 5 * base::millisecond;
    static constexpr base::Nanoseconds first_window_time = base::millisecond;
    static constexpr std::uint64_t window_bytes = 32 * 1024;
    static constexpr base::Nanoseconds look_time = 20 * base::microsecond;
    // On a rail so fast that this passes sooner: twice the bursts that networks are known to pass.
    static constexpr std::uint64_t first_window_bytes = 512 * 1024;
    // A day a byte: no rate is lower.
    static constexpr Ticks slowest = to_ticks(base::Nanoseconds{86'400} * base::second) / 1024;

    void account(base::Nanoseconds now, base::Nanoseconds busy) noexcept;
    void add(base::Nanoseconds time, std::uint64_t bytes, bool sure, base::Nanoseconds busy) noexcept;
    void end_window(Ticks rate, bool sure, base::Nanoseconds busy) noexcept;
    [[nodiscard]] bool aged(base::Nanoseconds busy) const noexcept {
        return per_byte_ > 0 && busy - learnt_ >= 2 * half_life;
    }

    std::uint64_t backlog_ = 0;
    std::uint64_t pending_ = 0;     // delivered since the last settle
    std::uint64_t busy_bytes_ = 0;  // delivered since the rail was last idle
    base::Nanoseconds last_ = 0;    // the last settle, or the beginning of the busy period
    bool counts_ = false;           // from then on there has been a backlog
    Ticks per_byte_ = 0;
    base::Nanoseconds learnt_ = 0;  // when that was, of the busy clock
    base::Nanoseconds time_ = 0;    // of the window under way
    std::uint64_t bytes_ = 0;
    std::array<Ticks, 3> windows_{};  // the last ones
    std::uint32_t window_count_ = 0;
};

/// The latency of one link, from small messages that met no backlog: the least of the last second or two, because whatever
/// else happened only added to it.
class Echo {
public:
    /// One came back acknowledged after `round_trip`, less what it was held over there.
    void heard(base::Nanoseconds round_trip, base::Nanoseconds now) noexcept;
    /// One way; 0 while unknown.
    [[nodiscard]] Ticks latency(base::Nanoseconds now) const noexcept {
        const bool known = latest_count_ + before_count_ >= enough && now < window_end_ + window;
        return known ? to_ticks(std::min(latest_, before_)) / 2 : 0;
    }

private:
    static constexpr base::Nanoseconds window = base::second;
    // The least of fewer may well be one that a peer was late for.
    static constexpr std::uint32_t enough = 8;
    static constexpr base::Nanoseconds unknown = base::Nanoseconds{1} << 50;

    base::Nanoseconds latest_ = unknown;  // of the window under way
    base::Nanoseconds before_ = unknown;  // of the one before it
    std::uint32_t latest_count_ = 0;
    std::uint32_t before_count_ = 0;
    base::Nanoseconds window_end_ = 0;
};

}  // namespace railmux::sched

// SpreadContest: how messages that go to and fro fare best: spread as predicted, or otherwise (Spread).
//
// Who sends a few messages and then waits for the answer never fills a rail. A shaper that passes at once what was not used
// before hides how slow it is, so that nothing shows what each rail sustains, nor that one which has nothing to do would pass
// its part at once; and two rails may cost the processors more than they gain. To try it needs no guess: from the beginning of
// one burst to the next, with nothing under way at either, there is a time and a number of messages there and back. So each
// way is tried for some bursts, and kept if a message takes less by a thirty-second, in two windows in a row. A vain trial
// doubles the time to the next one, which is 128 times as far away as it cost, at least. What takes longer than another way
// once did is tried against that again; what takes a quarter longer soon after it has won goes back, and waits twice as long.
// Messages of another size, by a quarter, are another traffic: then nothing is known.
//
// Turns by rate need to know rates; where nobody does, turns of as much over each rail, which use up what rails had saved up,
// are tried for long enough to show them.
//
// One of the two sides tries, and says with each frame how it spreads; the other one does the same, unless that one sends next
// to nothing.
//
// Threads: one thread at a time per object. Pure: time is an argument.
// Lifetime: a value; of one peer and its links; a new one for others.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.hpp"
#include "sched/spread.hpp"
#include "sched/ticks.hpp"

namespace railmux::sched {

class SpreadContest {
public:
    /// What is known of the frames to and from the peer: counters that only grow, and wrap around; and of the rails.
    struct Score {
        std::uint32_t handed = 0;          // ours, to rails, this one too,
        std::uint32_t sent = 0;            // ... and of these, all up to there, those that arrived
        std::uint32_t received = 0;        // the peer's
        std::uint32_t heavy_received = 0;  // ... of these, those that are heavy and came at once
        std::uint32_t others = 0;          // changes when a large one is sent
        bool rates_shown = true;           // there are rates for turns to go by,
        bool rates_supposed = false;       // ... of which some are not sure
        base::Nanoseconds lulls = 0;       // in which none was under way either way, all so far (Lulls)
    };

    /// Whether heavy frames leave in bursts, with none under way before each.
    [[nodiscard]] bool lone() const noexcept { return lone_; }
    /// Whether it is tried.
    [[nodiscard]] bool trying() const noexcept { return lone_ && trying_ && !led_; }
    /// How the next one goes, where the peer spreads its own as it says.
    [[nodiscard]] Spread spread(Spread there) const noexcept {
        if (!lone_) return Spread::predicted;
        return led_ ? there : trying_ ? tried_ : home_;
    }

    /// A heavy frame of so many bytes goes. `follows`: it is the peer that tries.
    void went(std::uint64_t bytes, const Score& score, bool follows, base::Nanoseconds now) noexcept;

private:
    // More without a pause are no burst, but a stream.
    static constexpr std::uint32_t longest_burst = 64;
    // All times here stand still in lulls: who sends and waits and then computes has each burst compared with the others. After
    // so long a time, or a burst that lasts so long, rails may be others.
    static constexpr base::Nanoseconds longest_pause = base::second;
    // So long and so many bursts show something, or, where they take long, few.
    static constexpr base::Nanoseconds window = 8 * base::millisecond;
    static constexpr std::uint32_t window_bursts = 8;
    static constexpr base::Nanoseconds longest_window = 40 * base::millisecond;
    // A trial counts from when what rails had saved up before may be used up, after so many short windows. One of a way
    // that was tried before ends if the last of these was worse than what is done by a sixteenth.
    static constexpr std::uint32_t settling_windows = 2;
    static constexpr base::Nanoseconds settling = 2 * base::millisecond;
    static constexpr std::uint32_t settling_bursts = 2;
    // ... and ends at once if messages take half as long again, in so long a time and so many bursts.
    static constexpr base::Nanoseconds vain_after = base::millisecond;
    // ... or longer, where that may show the rates for other turns,
    static constexpr base::Nanoseconds shown_after = 6 * base::millisecond;
    static constexpr std::uint32_t vain_bursts = 3;
    static constexpr std::uint32_t very_vain_bursts = 2;        // ... or three times as long
    static constexpr base::Nanoseconds longest_burst_time = 4;  // times what bursts take, one counts for at most
    static constexpr std::uint32_t enough_windows = 2;
    // Windows that differ by this part are no usual ones.
    static constexpr Ticks unsteady_part = 16;
    // From one trial to the next; of the same way, after a vain one, and after more of them, at most.
    static constexpr base::Nanoseconds between_trials = 10 * base::millisecond;
    static constexpr base::Nanoseconds first_wait = 25 * base::millisecond;
    static constexpr base::Nanoseconds longest_wait = 16 * base::second;
    static constexpr base::Nanoseconds wait_per_loss = 128;
    // What has won and takes a quarter longer before so long, has not changed: it never was that good.
    static constexpr base::Nanoseconds lasting = base::second / 2;
    // From one trial to that of a way that was better once.
    static constexpr base::Nanoseconds wait_if_better = 25 * base::millisecond;

    /// What is known of one.
    struct Way {
        Ticks takes = 0;            // a message; 0: not known
        base::Nanoseconds due = 0;  // its next trial
        base::Nanoseconds wait = first_wait;
    };
    /// From the beginning of one burst to that of another.
    struct Window {
        bool open = false;  // there was a beginning
        base::Nanoseconds time = 0;
        std::uint32_t bursts = 0;
        std::uint32_t went = 0;  // ours
        std::uint64_t bytes = 0;
        Score at{};
    };

    [[nodiscard]] static bool better(Ticks one, Ticks than) noexcept { return one + one / 32 < than; }
    [[nodiscard]] Ticks cost(const Score& score) const noexcept;
    [[nodiscard]] bool another_traffic() const noexcept;
    [[nodiscard]] bool over() const noexcept;
    void begins(const Score& score, bool follows, base::Nanoseconds now) noexcept;
    void begin_window(const Score& score) noexcept;
    void interrupt() noexcept;
    void forget() noexcept;
    void judge(const Score& score, bool follows, base::Nanoseconds now) noexcept;
    void judge_trial(const Score& score, base::Nanoseconds now) noexcept;
    void end_trial(bool won, base::Nanoseconds now) noexcept;
    void go_back(Ticks takes, base::Nanoseconds now) noexcept;
    [[nodiscard]] Spread next_way(bool rates_shown, base::Nanoseconds now) const noexcept;
    [[nodiscard]] Way& of(Spread way) noexcept { return ways_[static_cast<std::size_t>(way)]; }
    [[nodiscard]] const Way& of(Spread way) const noexcept { return ways_[static_cast<std::size_t>(way)]; }

    bool lone_ = false;
    bool led_ = false;  // the peer tries
    bool trying_ = false;
    std::uint32_t settling_ = 0;              // so many windows of the trial are not counted
    Spread home_ = Spread::predicted;         // how they go,
    Spread tried_ = Spread::predicted;        // unless this is tried,
    Spread home_before_ = Spread::predicted;  // and went until that was won
    std::uint32_t since_ = 0;                 // frames of ours, since a burst began
    std::uint32_t handed_ = 0;                // one beyond the number of the last one
    base::Nanoseconds begun_ = 0;             // the burst
    base::Nanoseconds lulls_ = 0;             // until then
    std::uint32_t others_ = 0;                // as they were told
    std::uint64_t usual_bytes_ = 0;           // of ours, on average
    base::Nanoseconds usual_burst_ = 0;       // how long one takes, as they go usually
    std::array<Way, spreads> ways_{};
    Ticks last_ = 0;                // what a message took in the last window; 0: there was none to compare
    base::Nanoseconds ended_ = 0;   // the last trial
    base::Nanoseconds won_at_ = 0;  // the last that was won
    base::Nanoseconds lost_ = 0;    // by the one under way
    std::uint32_t won_ = 0;         // windows of that
    Window window_;
};

}  // namespace railmux::sched

// Pace: the rate at which a rail serves a backlog, from acknowledgements.
//
// From one acknowledgement to the next a rail that has a backlog before and after delivers as fast as it can: bytes over time
// is its rate, if these bytes were all on the rail at the beginning. Times without a backlog, or before the first
// acknowledgement of a busy period, are latency or the sender's own pace and do not count, so that neither queueing nor an
// idle sender is learnt as low bandwidth; nor does a backlog that was none, but acknowledgements that nobody had looked for.
// Times are added up over windows long enough for the grain of acknowledgements and for the bursts that networks pass; the
// median of the last three windows is the rate, so that a peer that was away for a moment does not look like a slow rail.
//
// The beginning of a backlog may pass with what the rail had saved up, and is left out then (SavedUp).
//
// What is sent together over an idle rail, a train, shows the rate, too, if it is late (Lateness); and so does what is on a
// rail when a message is handed to it, if somebody knows when that came. So does a time that passed with handing over (Fed).
//
// Where other processes use the rail too, what they got meanwhile counts as work of the rail, or sharing would be learnt as
// a slow rail and then, with their backlog in front of ours, be counted twice. But it counts only as far as their backlog
// explains it (twice that, because backlogs are seen now and then only): that we get a tenth of what they get, with as much
// on the rail as they have, is not their doing but our peer's, or that of something on the way to it.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <limits>
#include <utility>

#include "sched/fed.hpp"
#include "sched/lateness.hpp"
#include "sched/policy.hpp"
#include "sched/proven.hpp"
#include "sched/saved_up.hpp"
#include "sched/ticks.hpp"

namespace railmux::sched {

/// All that was handed to a rail since it was last idle.
struct Train {
    base::Nanoseconds begin = 0;  // when it was handed over, the first of it
    base::Nanoseconds end = 0;    // ... and the last
    std::uint64_t bytes = 0;
    std::uint32_t messages = 0;
    bool undisturbed = true;  // nobody else had anything on the rail
};

/// What was sent together over an idle rail, or was on a rail when something was handed to it, with that: how long it took.
struct Passage {
    std::uint64_t bytes = 0;
    std::uint32_t messages = 1;     // on the way to the peer then, over whatever rail
    base::Nanoseconds service = 0;  // besides the latency
    bool by_host = false;           // the peer's kernel or adapter tells when it came
    Mark end{};  // when it came, and what was handed over until it was; nothing: all that was has come now
    // Bytes and time from when the rail was last idle, to the same end: of `bytes` some may have come before it was known. 0:
    // these are they.
    std::uint64_t since_idle = 0;
    base::Nanoseconds service_since_idle = 0;
    // ... at most: the peer's clock may not be known better. The first frame of all, which teaches it, was behind itself.
    base::Nanoseconds longest_since_idle = 0;
};

/// What other processes have on a rail that they share with us.
struct Others {
    std::uint64_t backlog = 0;  // bytes
    std::uint64_t gone = 0;     // bytes that are off the rail again; only grows
};

/// How it became known that something has come through.
struct Seen {
    base::Nanoseconds unseen = 0;  // for so long it may have been known already, had anybody looked
    /// What is not told of was still on the rail at this moment: the host at the other end of the link was asked, and no peer
    /// kept anything back. But what has come may have come at any time since somebody asked last.
    bool exact = false;
    std::uint64_t unposted = 0;  // bytes of the backlog that the rail has not been given yet
};

class Pace {
public:
    /// So much shows the rate, where it is timed.
    static constexpr std::uint64_t timed_bytes = 1024;

    /// What is left on a rail, by what its host says, counts if it is more: transports add to what they are given.
    static constexpr std::uint64_t left_bytes = 2 * 1024;

    /// `bytes` in so many `messages` are handed to the rail; `ours`: nobody else has anything on it.
    void sent(std::uint64_t bytes, base::Nanoseconds now, bool ours = true, std::uint32_t messages = 1) noexcept;
    /// That something had come was known here so long afterwards.
    void told_after(base::Nanoseconds time) noexcept {
        told_after_ += time > told_after_ ? time - told_after_ : (time - told_after_) / 4;
    }
    /// What may have come through by any moment although nobody here knows.
    [[nodiscard]] std::uint64_t landed_unseen() const noexcept;
    /// To hand over what is large took the process so long.
    void handing(base::Nanoseconds time) noexcept { fed_.handing(time); }
    /// They arrived. Several may arrive at once; settle then says that these were all.
    void delivered(std::uint64_t bytes, std::uint32_t messages = 1) noexcept {
        assert(backlog_ >= bytes);
        pending_ += bytes;
        pending_count_ += messages;
        backlog_ -= bytes;
    }
    [[nodiscard]] const Train& train() const noexcept { return train_; }
    /// `thought` is the G that the policy went by. Both sides look now and then only, and the peer takes its time over each of
    /// the messages that were on the way to it then, unless its host tells: what differs by less than that confirms what was
    /// thought.
    void lone(const Passage& passage, Ticks thought, base::Nanoseconds now, base::Nanoseconds busy) noexcept;
    void settle(base::Nanoseconds now, base::Nanoseconds busy, const Others& others = {},
                const Seen& seen = {}) noexcept {
        if (pending_ > 0) account(now, busy, others, seen);
    }
    [[nodiscard]] bool unsettled() const noexcept { return pending_ > 0; }
    /// This is its rate: it was measured on purpose.
    void measured(Ticks per_byte, base::Nanoseconds busy) noexcept;
    /// It can be used again, after it was lost: its rate is what it was some time before that. While a loss is not yet known
    /// acknowledgements are missing, which looks like a rail of a hundredth of its rate; and so does what goes over a new
    /// connection first (one that starts slowly, a queue from before, what is sent again), so for a while no single train shows
    /// that the rail is slower than it was. A backlog does.
    void restored(base::Nanoseconds now, base::Nanoseconds busy) noexcept;
    /// They never will, over this rail.
    void lost(std::uint64_t bytes) noexcept {
        assert(backlog_ >= bytes);
        backlog_ -= bytes;
        stretch_.waiting = 0;
        disturbed();
    }

    [[nodiscard]] std::uint64_t backlog() const noexcept { return backlog_; }
    /// All that was ever handed over.
    [[nodiscard]] std::uint64_t handed() const noexcept { return handed_; }
    /// For how long nothing has come through although there is a backlog; all that had come by `looked` is known. That
    /// nobody looked since says nothing of the rail.
    [[nodiscard]] base::Nanoseconds silent(base::Nanoseconds looked) const noexcept {
        return backlog_ == 0 ? 0 : std::max<base::Nanoseconds>(looked - last_, 0);
    }
    /// G as it was last learnt, of the rail for all who use it; 0 while unknown.
    [[nodiscard]] Ticks per_byte() const noexcept { return rail_.per_byte; }
    /// ... but for what passed at once, which bursts do on rails that save up: trials, and what was taken off since.
    [[nodiscard]] Ticks sustained() const noexcept { return sustained_; }
    /// G to go by; 0 while unknown. `busy` is a clock that stands while there is no traffic on any rail. What others were
    /// preferred to for long is thought better and better of, as far as `prior`, until it is tried again.
    [[nodiscard]] Ticks per_byte(base::Nanoseconds busy, Ticks prior) const noexcept {
        if (!aged(busy)) return rail_.per_byte;
        const auto halvings = std::min<base::Nanoseconds>((busy - used_) / half_life - 1, 62);
        return std::max(rail_.per_byte >> halvings, std::clamp<Ticks>(prior, 1, rail_.per_byte));
    }
    /// Whether peers' hosts have told of late when trains ended: then Lateness knows what bursts take.
    [[nodiscard]] bool ends_known(base::Nanoseconds now) const noexcept { return ends_told(now, base::second); }
    /// ... within so long a time.
    [[nodiscard]] bool ends_told(base::Nanoseconds now, base::Nanoseconds within) const noexcept {
        return told_by_host_ > 0 && now - told_by_host_ < within;
    }
    /// Whether something passed at once in the last second, although it is known to take its time.
    [[nodiscard]] bool saves_up(base::Nanoseconds now) const noexcept {
        return at_once_seen_ > 0 && now - at_once_seen_ < base::second;
    }
    /// What a byte took of what was timed of late on the rail, beyond what looks are apart; and when that was, last.
    [[nodiscard]] Ticks passes() const noexcept { return passes_; }
    [[nodiscard]] base::Nanoseconds passed_at() const noexcept { return passed_at_; }
    /// Whether its rate is known, but from long ago: others have been preferred to it since.
    [[nodiscard]] bool aged(base::Nanoseconds busy) const noexcept {
        return rail_.per_byte > 0 && busy - used_ >= 2 * half_life;
    }
    /// Whether the rate was told by trains, which anybody may have held up, and not by backlogs or a measurement.
    [[nodiscard]] bool doubtful() const noexcept { return doubts_ > 0; }
    /// Whether what it is used for now is a trial: of a rate from long ago, or of a guess.
    [[nodiscard]] bool tried(base::Nanoseconds busy) const noexcept { return hoped_ || aged(busy); }
    /// What a byte of ours takes while others use the rail as they do; 0 while unknown.
    [[nodiscard]] Ticks own_per_byte() const noexcept { return own_.per_byte; }
    /// What traffic knows better than the model of a link over the rail. True: of G no more is known than that it is at most
    /// what bursts took that passed at once, which is the more the shorter they were.
    [[nodiscard]] bool correct(Cost& cost, base::Nanoseconds now, base::Nanoseconds busy) const noexcept;
    /// What traffic has shown nothing of may be wrong by any factor, and so slow that nothing is ever sent that would show
    /// more. So it is thought better and better of, too, as far as the `best` of the links that it competes with. Once traffic
    /// has shown the rate there is no such trial any more.
    void hope(Cost& cost, Ticks best, base::Nanoseconds busy) noexcept;
    /// What it has done of late.
    [[nodiscard]] const Proven& proven() const noexcept { return proven_; }
    /// How much may be on the rail while its rate is not known for sure: twice what is known to have gone through since it
    /// was last idle, as TCP's slow start does; little, if it is only tried again.
    [[nodiscard]] std::uint64_t allowance(base::Nanoseconds busy) const noexcept {
        return (tried(busy) ? trial_bytes : first_allowance) + 2 * busy_bytes_;
    }

private:
    void ease() noexcept;
    void end_trial(Ticks took, Ticks absent, Ticks thought, base::Nanoseconds busy) noexcept;
    void end_hope(base::Nanoseconds busy) noexcept;
    static constexpr std::uint64_t first_allowance = 256 * 1024;
    // A rail ten times as slow as others is tried about twice a second, which costs the time of a small piece each.
    static constexpr base::Nanoseconds half_life = 100 * base::millisecond;
    static constexpr std::uint64_t trial_bytes = 16 * 1024;
    // What has shown nothing by then does not soon: it is tried again as one from long ago would be.
    static constexpr std::uint64_t most_hoped_bytes = 16 * trial_bytes;
    // Idle for longer than acknowledgements and moments of absence take: the network may have changed.
    static constexpr base::Nanoseconds idle_time = 10 * base::millisecond;
    // A backlog is what keeps a rail busy until long after the next acknowledgement, which may be kept back for 100 us.
    static constexpr base::Nanoseconds backlog_time = 250 * base::microsecond;
    static constexpr std::uint64_t backlog_bytes = 32 * 1024;
    // A window; the first one is short, because what is known before it is a guess.
    static constexpr base::Nanoseconds window_time = 5 * base::millisecond;
    static constexpr base::Nanoseconds first_window_time = base::millisecond;
    // The first of trains: of many small messages the peer's processors show more, for a moment, than the rail.
    static constexpr base::Nanoseconds first_late_time = 3 * base::millisecond;
    static constexpr std::uint64_t window_bytes = 32 * 1024;
    // Both ends look now and then, and take so long over a message.
    static constexpr base::Nanoseconds look_time = 20 * base::microsecond;
    static constexpr base::Nanoseconds message_time = 5 * base::microsecond;
    static constexpr base::Nanoseconds longest_chance = 200 * base::microsecond;
    // A kernel knows when it got something to some microseconds, as does the sender when it was handed over.
    static constexpr base::Nanoseconds host_time = 5 * base::microsecond;
    [[nodiscard]] static base::Nanoseconds chance_of(const Passage& passage) noexcept {
        const auto others = std::max(passage.messages, std::uint32_t{1}) - 1;
        return passage.by_host ? host_time : std::min(look_time + message_time * others, longest_chance);
    }
    // The median of three windows is not what trains had shown when two of them are.
    static constexpr std::uint32_t doubted = 2;
    // On a rail so fast that this passes sooner: twice the bursts that networks are known to pass.
    static constexpr std::uint64_t first_window_bytes = 512 * 1024;
    // From a restored link on: TCP makes up for losses at its beginning within a few of its least time-outs, 200 ms each.
    static constexpr base::Nanoseconds forgiven = base::second;
    // What was thought so long before a loss nobody had lost by then: other rails are heard within 60 ms, links in a second.
    static constexpr base::Nanoseconds remembered = base::second / 2;
    // A day a byte: no rate is lower.
    static constexpr Ticks slowest = to_ticks(base::Nanoseconds{86'400} * base::second) / 1024;

    /// From a moment at which it was known what the rail had to do. What comes through at moments of which that is not known
    /// belongs to it all the same: it is left out only with all of it, or rates would be told by what comes in between.
    struct Stretch {
        base::Nanoseconds begin = 0;
        std::uint64_t waiting = 0;   // the backlog then, if it was one
        std::uint64_t through = 0;   // came through since,
        std::uint64_t in_front = 0;  // while others should have got so many in turn with us, by what they had there
        bool exact = false;          // the host at the other end had told what was left
    };

    void account(base::Nanoseconds now, base::Nanoseconds busy, const Others& others, const Seen& seen) noexcept;
    void end_stretch(base::Nanoseconds now, const Others& others, const Seen& seen) noexcept;
    [[nodiscard]] bool shows_more(base::Nanoseconds time, std::uint64_t bytes) const noexcept;
    void add(base::Nanoseconds time, std::uint64_t bytes) noexcept;
    void add_fed(const Others& others, base::Nanoseconds now) noexcept;
    /// `others`: what came through meanwhile of what they had in front of ours.
    void end_window(base::Nanoseconds time, std::uint64_t bytes, std::uint64_t others) noexcept;
    void relearn(Ticks per_byte) noexcept;
    void remember(base::Nanoseconds now) noexcept;
    /// What is on the rail takes longer than the next acknowledgement, as far as is known.
    [[nodiscard]] bool lasts() const noexcept {
        return static_cast<Ticks>(std::min<std::uint64_t>(backlog_, backlog_bytes)) * rail_.per_byte >=
               to_ticks(backlog_time);
    }
    void disturbed() noexcept {
        train_.undisturbed = false;
        lateness_.forget(handed_);
        fed_.forget();
    }

    std::uint64_t handed_ = 0;
    std::uint64_t backlog_ = 0;
    std::uint64_t pending_ = 0;  // delivered since the last settle
    std::uint32_t pending_count_ = 0;
    std::uint64_t busy_bytes_ = 0;  // delivered since the rail was last idle
    base::Nanoseconds last_ = 0;    // the last settle, or the beginning of the busy period
    Stretch stretch_;
    SavedUp saved_up_;
    bool told_ = false;                 // the host at the other end tells what has come
    base::Nanoseconds told_after_ = 0;  // ... and else, how long acknowledgements have been on their way of late
    Train train_;
    Ticks before_trial_ = 0;         // what was known until a trial, while only that speaks against it
    bool shown_ = false;             // the rate, by traffic
    std::uint32_t doubts_ = 0;       // ... by trains only: so many windows of a backlog would make it sure
    bool doubted_before_ = false;    // the same before the trial
    bool hoped_ = false;             // it is taken for faster than anything says,
    Ticks guess_ = 0;                // ... which is that, of the link that was chosen from last,
    std::uint64_t hoped_bytes_ = 0;  // ... and so much came through meanwhile
    base::Nanoseconds used_ = 0;     // when something large last came through, of the busy clock
    std::array<Ticks, 2> past_{};    // rates some time ago: the earlier one, and the later one
    base::Nanoseconds noted_ = 0;    // when the later one was
    base::Nanoseconds forgiven_until_ = 0;
    base::Nanoseconds time_ = 0;  // of the window under way
    std::uint64_t bytes_ = 0;
    bool bursts_ = false;            // it has beginnings of backlogs, over a rail that may have saved something up
    std::uint64_t others_ = 0;       // bytes that the others got meanwhile
    std::uint64_t in_front_ = 0;     // bytes that they should have got in turn with us
    std::uint64_t others_gone_ = 0;  // as last told
    std::uint32_t window_count_ = 0;

    struct Rate {
        std::array<Ticks, 3> windows{};  // the last ones
        Ticks per_byte = 0;              // their median
        void add(std::uint32_t count, base::Nanoseconds time, std::uint64_t bytes) noexcept;
    };
    Rate rail_;
    Ticks learnt_ = 0;     // its G, but for what trains that passed at once have taken off since
    Ticks sustained_ = 0;  // ... and but for trials
    Rate own_;
    Proven proven_;
    // What a byte took at most in the fastest trains of late: a probe, which the model is from, may have been held up, and they
    // prove it. Of a rate that traffic has shown they prove nothing, as bursts pass faster than that.
    LeastOfLate<Ticks> at_once_;
    Ticks passes_ = 0;
    base::Nanoseconds passed_at_ = 0;
    base::Nanoseconds at_once_seen_ = 0;  // ... after that, the last that passed so
    Lateness lateness_;
    base::Nanoseconds told_by_host_ = 0;  // the last of its trains
    Fed fed_;
    std::uint64_t fed_others_ = 0;  // what others had got of the rail then
};

}  // namespace railmux::sched

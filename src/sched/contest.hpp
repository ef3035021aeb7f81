// Contest: which rail messages fare best over, or whether they do best where each is predicted to arrive first, where no queue
// tells: tried for a moment now and then, and judged by what came of it.
//
// Between two ends of which one never waits, what waits is no backlog of a rail, no train is late, and lone messages pass any
// rail as fast; nor is a probe wiser where bursts pass at once. Yet headers alone fill a slow rail with messages of a few
// bytes; and two rails that are both faster than the processors cost them more packets and calls than one does. So another way
// is tried for some milliseconds, and kept if clearly more messages were done in that time, both ways, in two windows in a row.
// A vain trial doubles the time to the next, so that all of them cost about a hundredth of the first second, and next to
// nothing later.
//
// Light frames all go over one rail, one way or another. Heavy ones are spread as predicted unless one rail is found to be
// better for them; only rails that are about as fast as the fastest are tried, because what is under way would wait there for
// long. There is a contest for each of the two kinds.
//
// One of the two sides tries, and the other one sends as it sees its peer do, unless that sends next to nothing: else each
// would see what the other one's trials do, and two at a time would show nothing.
//
// Threads: one thread at a time per object. Pure: time is an argument.
// Lifetime: a value; of one peer and its candidates; a new one for others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "sched/policy.hpp"

namespace railmux::sched {

class Contest {
public:
    enum class Kind : std::uint8_t { light, heavy };  // frames: of at most light_bytes, or of more
    static constexpr std::size_t none = ~std::size_t{0};

    /// For frames to a peer with so many candidates.
    Contest(Kind kind, std::size_t candidates) : kind_(kind), heavy_received_(candidates) {}

    /// What is known of the frames to and from the peer: counters that only grow, and wrap around.
    struct Score {
        std::uint32_t handed = 0;    // ours, to rails,
        std::uint32_t sent = 0;      // ... and of these, all up to there, those that arrived
        std::uint32_t received = 0;  // the peer's
        std::uint32_t others = 0;    // changes when one is sent that counts differently: longer than those of the kind
    };

    /// The place of the candidate that frames of the kind go to, whatever was predicted; none: as predicted.
    [[nodiscard]] std::size_t favoured() const noexcept { return favoured_; }
    /// Whether there were some a moment ago.
    [[nodiscard]] bool lively(base::Nanoseconds now) const noexcept { return now - last_ <= pause; }

    /// One of the kind goes over `place`, between ends of which one does not keep up. `follows`: it is the peer that tries.
    void went(std::size_t place, std::span<const Candidate> candidates, const Score& score, bool follows,
              base::Nanoseconds now) noexcept;

private:
    // Without messages for so long there is nothing to compare; nor does it matter how the peer sent before.
    static constexpr base::Nanoseconds pause = 10 * base::millisecond;
    static constexpr base::Nanoseconds longest_wait = base::second;
    static constexpr std::uint32_t enough_windows = 2;
    // A rail that is known to take longer than that for so many is not tried: what waits there would hold up the rest.
    static constexpr std::uint64_t trial_bytes = 16 * 1024;
    static constexpr base::Nanoseconds longest_for_trial = base::millisecond;
    // Heavy frames of the peer's that show how it sends, by so many, or in so long a time: each rail brings some at once.
    static constexpr std::uint32_t shown = 16;
    static constexpr base::Nanoseconds shown_in = base::millisecond;

    struct Rules {
        // Hundreds of frames, and long beside a look or a moment of absence. Heavy ones are sent until there is no credit left,
        // and then again: longer than that takes.
        base::Nanoseconds window;
        // Of a trial: until both sides send as is tried, and nothing waits for what was sent before. A choice for light frames
        // holds for 100 us on each side; of heavy ones the peer shows how it sends, and more may be on the rails: with them a
        // trial does not begin either before all that has arrived.
        base::Nanoseconds settling;
        // From one trial to the next: at first, and when one was won; twice as long after each that was in vain.
        base::Nanoseconds first_wait;
        base::Nanoseconds wait_when_won;
        // A trial that brings less than so many sixteenths ends at once. What heavy frames leave on a rail that is no better is
        // waited for, for as long again: the next trial is so far away at least, and the longest if it was clearly worse.
        std::uint64_t least_sixteenths;
        base::Nanoseconds least_wait_when_vain;
        base::Nanoseconds least_wait_when_worse;
    };
    static constexpr Rules light_rules{.window = 2 * base::millisecond,
                                       .settling = base::millisecond / 2,
                                       .first_wait = 20 * base::millisecond,
                                       .wait_when_won = 20 * base::millisecond,
                                       .least_sixteenths = 8,
                                       .least_wait_when_vain = 0,
                                       .least_wait_when_worse = 0};
    static constexpr Rules heavy_rules{.window = 4 * base::millisecond,
                                       .settling = 2 * shown_in + base::millisecond / 4,
                                       .first_wait = 10 * base::millisecond,
                                       .wait_when_won = 250 * base::millisecond,
                                       .least_sixteenths = 11,
                                       .least_wait_when_vain = 100 * base::millisecond,
                                       .least_wait_when_worse = longest_wait};

    /// From one time that frames were told of to another: they come to be known in bunches.
    struct Window {
        base::Nanoseconds begin = 0;  // 0: with the next ones
        Score at;
        std::uint32_t went = 0;            // of the kind, ours
        std::uint32_t heavy_received = 0;  // the peer's
        [[nodiscard]] std::uint32_t sent(const Score& score) const noexcept { return score.sent - at.sent; }
        [[nodiscard]] std::uint32_t received(const Score& score) const noexcept { return score.received - at.received; }
        /// Frames, both ways, in a second or so.
        [[nodiscard]] std::uint64_t rate(const Score& score, base::Nanoseconds now) const noexcept {
            const auto done = std::uint64_t{sent(score)} + received(score);
            return (done << 30) / static_cast<std::uint64_t>(std::max<base::Nanoseconds>(now - begin, 1));
        }
    };
    enum class Outcome : std::uint8_t { won, vain, worse, interrupted };

    [[nodiscard]] bool heavy() const noexcept { return kind_ == Kind::heavy; }
    [[nodiscard]] const Rules& rules() const noexcept { return heavy() ? heavy_rules : light_rules; }
    [[nodiscard]] static bool fits(const Candidate& candidate) noexcept;
    [[nodiscard]] bool worth_trying(std::span<const Candidate> candidates, std::size_t place) const noexcept;
    [[nodiscard]] bool settled(const Score& score, base::Nanoseconds now) const noexcept;
    [[nodiscard]] bool peer_leads(std::span<const Candidate> candidates, const Score& score) const noexcept;
    void begin_anew(std::size_t way, std::uint32_t others) noexcept;
    void begin_window(std::span<const Candidate> candidates, const Score& score, base::Nanoseconds now) noexcept;
    void judge(std::span<const Candidate> candidates, const Score& score, bool follows, base::Nanoseconds now) noexcept;
    void watch(std::uint64_t rate, base::Nanoseconds now) noexcept;
    void judge_trial(std::uint64_t rate, bool over, base::Nanoseconds now) noexcept;
    void follow(std::span<const Candidate> candidates, base::Nanoseconds now) noexcept;
    void follow_light(std::span<const Candidate> candidates) noexcept;
    void follow_heavy(std::span<const Candidate> candidates, base::Nanoseconds now) noexcept;
    void lead(bool led, std::span<const Candidate> candidates, base::Nanoseconds now) noexcept;
    void begin(std::span<const Candidate> candidates, const Score& score, base::Nanoseconds now) noexcept;
    void end(Outcome outcome, base::Nanoseconds now) noexcept;

    Kind kind_;
    // Ways to send: the place of a rail; none: as predicted, which of heavy frames may be several.
    std::size_t favoured_ = none;
    std::size_t used_ = none;   // in the window under way
    std::size_t home_ = none;   // of a trial: how frames went before, and go again if it is in vain
    std::size_t tried_ = none;  // last, by its number
    bool trying_ = false;
    bool led_ = false;          // the peer tries
    std::uint32_t won_ = 0;     // windows of the trial
    std::uint64_t before_ = 0;  // the better of the last two rates without a trial; 0: not known
    std::uint64_t last_rate_ = 0;
    std::uint64_t usual_ = 0;      // over the rail that heavy frames keep to,
    std::uint32_t low_ = 0;        // ... and windows in a row with less than half of that
    base::Nanoseconds ended_ = 0;  // the last trial
    Window window_;
    bool first_ = true;              // ... is the first one: heavy frames find rails and buffers empty then
    std::uint32_t others_ = 0;       // as they were told
    std::uint32_t done_ = 0;         // frames, both ways, that were known of last,
    base::Nanoseconds done_at_ = 0;  // since then
    base::Nanoseconds last_ = 0;     // frame
    base::Nanoseconds due_ = 0;      // the next trial
    base::Nanoseconds wait_ = rules().first_wait;
    base::Nanoseconds settled_ = 0;              // the one under way counts from then,
    std::uint32_t handed_ = 0;                   // ... and with heavy frames from when so many have arrived
    base::Nanoseconds shown_ = 0;                // when the peer was last seen to have sent enough,
    std::vector<std::uint32_t> heavy_received_;  // by place
};

}  // namespace railmux::sched

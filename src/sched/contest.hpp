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
// Light messages all go over one rail, one way or another. Others are spread as predicted unless one rail is found to be better
// for them; only rails that are about as fast as the fastest are tried, because what is under way would wait there for long.
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
    static constexpr std::size_t none = ~std::size_t{0};

    /// What is known of the messages to and from the peer: counters that only grow, and wrap around.
    struct Score {
        std::uint32_t handed = 0;    // ours, to rails,
        std::uint32_t sent = 0;      // ... and of these, all up to there, those that arrived
        std::uint32_t received = 0;  // the peer's
        // Change when one is sent that counts differently: among light ones any that is not, else one that goes in pieces.
        std::uint32_t heavy = 0;
        std::uint32_t large = 0;
    };

    /// The place of the candidate that messages go to, whatever was predicted; none: as predicted.
    [[nodiscard]] std::size_t favoured() const noexcept { return favoured_; }

    /// A message of so many bytes goes over `place`, between ends of which one does not keep up. `follows`: it is the peer that
    /// tries.
    void went(std::size_t place, std::uint64_t bytes, std::span<const Candidate> candidates, const Score& score,
              bool follows, base::Nanoseconds now);

private:
    // Hundreds of messages, and long beside a look or a moment of absence. Others than light ones are sent until there is no
    // credit left, and then again: longer than that takes.
    static constexpr base::Nanoseconds light_window = 2 * base::millisecond;
    static constexpr base::Nanoseconds heavy_window = 4 * base::millisecond;
    // Until both sides send over the rail that is tried, and nothing waits for what is still on the other: a choice holds for
    // 100 us on each side. Of others than light messages more may be there: then it takes until all that has arrived.
    static constexpr base::Nanoseconds settling = base::millisecond / 2;
    // From one trial to the next: after vain ones twice as long each time. What other than light messages leave on a rail that
    // is worse is waited for, for as long again: after one that was clearly worse the next trial is the longest away at once.
    static constexpr base::Nanoseconds first_light_wait = 20 * base::millisecond;
    static constexpr base::Nanoseconds first_heavy_wait = 10 * base::millisecond;
    static constexpr base::Nanoseconds heavy_wait_when_won = 250 * base::millisecond;
    static constexpr base::Nanoseconds longest_wait = base::second;
    // Without messages for so long there is nothing to compare; nor does it matter what they were before.
    static constexpr base::Nanoseconds pause = 10 * base::millisecond;
    static constexpr std::uint32_t enough_windows = 2;
    // A rail that is known to take longer than that for so many is not tried: what waits there would hold up the rest.
    static constexpr std::uint64_t trial_bytes = 16 * 1024;
    static constexpr base::Nanoseconds longest_for_trial = base::millisecond;
    // The peer's that show how it sends, much less than it sends until a trial is settled; where they may come over several
    // rails, of so long a time, too, since each rail brings some at once.
    static constexpr std::uint32_t shown = 16;
    static constexpr base::Nanoseconds shown_in = settling / 2;

    /// From one time that messages were told of to another: they come to be known in bunches.
    struct Window {
        base::Nanoseconds begin = 0;  // 0: with the next ones
        Score at;
        [[nodiscard]] std::uint32_t sent(const Score& score) const noexcept { return score.sent - at.sent; }
        [[nodiscard]] std::uint32_t received(const Score& score) const noexcept { return score.received - at.received; }
        /// Messages, both ways, in a second or so.
        [[nodiscard]] std::uint64_t rate(const Score& score, base::Nanoseconds now) const noexcept {
            const auto done = std::uint64_t{sent(score)} + received(score);
            return (done << 30) / static_cast<std::uint64_t>(std::max<base::Nanoseconds>(now - begin, 1));
        }
    };

    [[nodiscard]] base::Nanoseconds window() const noexcept { return heavy_ ? heavy_window : light_window; }
    [[nodiscard]] base::Nanoseconds wait() const noexcept { return heavy_ ? heavy_wait_ : light_wait_; }
    [[nodiscard]] static bool fits(const Candidate& candidate) noexcept;
    void note_kind(std::uint64_t bytes, base::Nanoseconds now) noexcept;
    [[nodiscard]] bool worth_trying(std::span<const Candidate> candidates, std::size_t place) const noexcept;
    void begin_window(std::span<const Candidate> candidates, const Score& score, base::Nanoseconds now) noexcept;
    [[nodiscard]] bool led(std::span<const Candidate> candidates, const Score& score) const noexcept;
    [[nodiscard]] std::size_t way_of_peer(std::span<const Candidate> candidates, base::Nanoseconds now);
    void judge(std::span<const Candidate> candidates, const Score& score, bool follows, base::Nanoseconds now) noexcept;
    void judge_trial(std::uint64_t rate, bool over, base::Nanoseconds now) noexcept;
    [[nodiscard]] bool settled(const Score& score, base::Nanoseconds now) const noexcept;
    void begin(std::span<const Candidate> candidates, const Score& score, base::Nanoseconds now) noexcept;
    enum class Outcome : std::uint8_t { won, vain, worse };
    void end(Outcome outcome, base::Nanoseconds now) noexcept;

    // Ways to send: the place of a rail; none: as predicted, which may be several.
    std::size_t favoured_ = none;
    std::size_t used_ = none;  // in the window under way
    std::size_t home_ = none;  // of a trial: how messages went before, and go again if it is in vain
    std::size_t tried_ = 0;    // last
    bool trying_ = false;
    bool heavy_ = false;        // there are messages that are not light
    std::uint32_t won_ = 0;     // windows of the trial
    std::uint64_t before_ = 0;  // the better of the last two rates without a trial; 0: not known
    std::uint64_t last_rate_ = 0;
    bool led_ = false;  // the peer tries
    Window window_;
    std::uint64_t brought_ = 0;         // when it began
    std::uint32_t other_ = 0;           // messages, that do not count, by then
    std::uint32_t told_ = 0;            // messages, both ways, that were known of last,
    base::Nanoseconds told_at_ = 0;     // since then
    base::Nanoseconds last_ = 0;        // message
    base::Nanoseconds last_heavy_ = 0;  // one that is not light
    base::Nanoseconds due_ = 0;         // the next trial
    base::Nanoseconds settled_ = 0;     // the one under way counts from then,
    std::uint32_t handed_ = 0;          // and from when so many have arrived
    base::Nanoseconds light_wait_ = first_light_wait;
    base::Nanoseconds heavy_wait_ = first_heavy_wait;
    base::Nanoseconds shown_ = 0;          // when the peer was last seen to have sent enough,
    std::vector<std::uint32_t> received_;  // by place
};

}  // namespace railmux::sched

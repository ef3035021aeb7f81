// Contest: which rail small messages fare best over, where no queue tells: tried for a moment now and then, and judged by what
// came of it.
//
// Between two ends of which one never waits, what waits is no backlog of a rail, no train is late, and lone messages pass any
// rail as fast; nor is a probe wiser where bursts pass at once. Yet headers alone fill a slow rail with messages of a few
// bytes. So another rail is tried for some milliseconds, and kept if clearly more messages were done in that time, both ways,
// in two windows in a row. A vain trial doubles the time to the next, so that all of them cost about a hundredth of the first
// second, and next to nothing later.
//
// One of the two sides tries, and the other one sends over what it sees its peer use, unless that sends next to nothing: else
// each would see what the other one's trials do, and two at a time would show nothing.
//
// Threads: one thread at a time per object. Pure: time is an argument.
// Lifetime: a value; of one peer and its candidates; a new one for others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.hpp"
#include "sched/policy.hpp"

namespace railmux::sched {

class Contest {
public:
    static constexpr std::size_t none = ~std::size_t{0};

    /// What is known of the messages to and from the peer: counters that only grow, and wrap around.
    struct Score {
        std::uint32_t sent = 0;      // ours that arrived
        std::uint32_t received = 0;  // the peer's
        std::uint32_t large = 0;     // changes when a large one is sent: those count differently
    };

    /// The place of the candidate that small messages go to, whatever was predicted; none: as predicted.
    [[nodiscard]] std::size_t favoured() const noexcept { return favoured_; }

    /// A small message goes over `place`, between ends of which one does not keep up. `follows`: it is the peer that tries.
    void went(std::size_t place, std::span<const Candidate> candidates, const Score& score, bool follows,
              base::Nanoseconds now) noexcept;

private:
    // Hundreds of messages, and long beside a look or a moment of absence.
    static constexpr base::Nanoseconds window = 2 * base::millisecond;
    // Until both sides send over the rail that is tried, and nothing waits for what is still on the other: a choice holds for
    // 100 us on each side.
    static constexpr base::Nanoseconds settling = base::millisecond / 2;
    static constexpr base::Nanoseconds first_wait = 20 * base::millisecond;
    static constexpr base::Nanoseconds longest_wait = base::second;
    // Without messages for so long there is nothing to compare.
    static constexpr base::Nanoseconds pause = 10 * base::millisecond;
    static constexpr std::uint32_t enough_windows = 2;
    // A rail that is known to take longer than half a window for so many is not tried: what waits there would hold up the rest.
    static constexpr std::uint64_t trial_bytes = 16 * 1024;

    struct Window {
        base::Nanoseconds begin = 0;
        Score at;
        [[nodiscard]] std::uint32_t sent(const Score& score) const noexcept { return score.sent - at.sent; }
        [[nodiscard]] std::uint32_t received(const Score& score) const noexcept { return score.received - at.received; }
        /// Messages, both ways, in a second or so.
        [[nodiscard]] std::uint64_t rate(const Score& score, base::Nanoseconds now) const noexcept {
            const auto done = std::uint64_t{sent(score)} + received(score);
            return (done << 30) / static_cast<std::uint64_t>(std::max<base::Nanoseconds>(now - begin, 1));
        }
    };

    [[nodiscard]] bool trying() const noexcept { return home_ != none; }
    [[nodiscard]] static bool worth_trying(const Candidate& candidate) noexcept;
    void follow(std::span<const Candidate> candidates) noexcept;
    void begin(std::span<const Candidate> candidates, base::Nanoseconds now) noexcept;
    void end(bool won, const Score& score, base::Nanoseconds now) noexcept;

    std::size_t favoured_ = none;
    std::size_t used_ = none;   // in the window under way
    std::size_t home_ = none;   // of a trial: where messages went before, and go again if it is in vain
    std::size_t tried_ = 0;     // last
    std::uint32_t won_ = 0;     // windows of the trial
    std::uint64_t before_ = 0;  // the better of the last two rates without a trial; 0: not known
    std::uint64_t last_rate_ = 0;
    bool led_ = false;  // the peer tries, and sends an eighth of what we do at least
    Window window_;
    base::Nanoseconds last_ = 0;     // message
    base::Nanoseconds due_ = 0;      // the next trial
    base::Nanoseconds settled_ = 0;  // the one under way counts from then
    base::Nanoseconds wait_ = first_wait;
};

}  // namespace railmux::sched

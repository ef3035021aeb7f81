// Recovery: links that were lost to peers who are still there: which, since when and why, and when each is asked for anew.
//
// One side asks for a lost link again: the one that had asked for it before, because it is known to be able to. Where an
// interface has come back its side asks at once, too; if both do, the tie is settled as for any two that connect at once.
// From one try to the next the time doubles, and a link that has come back and is lost soon goes on where it was, so that one
// that comes and goes costs no more than one that stays away. It counts from the beginning of a try: while a network is silent
// each takes all the time that it may have, and whoever restores it waits for the beginning of the next.
//
// Threads: one engine at a time. Pure: time is an argument.
// Lifetime: owned by the rail manager. An entry lives from the first loss of its link to the end of
// the session, or until nobody misses it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace railmux::rails {

class Recovery {
public:
    struct Options {
        base::Nanoseconds first = 50 * base::millisecond;     // until the first try
        base::Nanoseconds longest = 500 * base::millisecond;  // between two tries
    };
    static constexpr auto never = base::never;
    /// Whoever is away for half a minute is seldom back within the next second. One that is nevertheless should not wait: only
    /// where many are lost they are tried less often, one every `apart`, so that all together cost a few percent of a core.
    static constexpr base::Nanoseconds rare_after = 30 * base::second;
    static constexpr base::Nanoseconds apart = 10 * base::millisecond;
    /// ... but each this often, and pairs that were never up.
    static constexpr int rarer = 10;
    /// A pair that has never been up for so long is most likely none: in the end it is tried this much less often.
    static constexpr int rarest = 120;
    /// A host that answers too late for one try would be without the link for ever; but whoever restores a network that was
    /// silent waits for the end of the try under way. So of the tries each fourth may take twice its limit, each sixteenth four
    /// times as long, and so on, up to `longest_try`: any limit is reached, and most tries stay short (M. Luby, A. Sinclair, D.
    /// Zuckerman, "Optimal Speedup of Las Vegas Algorithms", 1993).
    static constexpr base::Nanoseconds longest_try = 2 * base::second;
    static constexpr int longer_each = 2;  // as a power of two
    /// Lost again within so long a link has not really been back.
    static constexpr base::Nanoseconds steady = 10 * base::second;

    struct Pair {
        std::uint32_t peer = 0;
        std::uint32_t rail = 0;        // local
        std::uint8_t remote_rail = 0;  // the peer's number
        friend bool operator==(const Pair&, const Pair&) noexcept = default;
    };
    struct Lost {
        Pair pair;
        std::string label;            // both ends, for people
        std::string cause;            // of the loss
        bool ours = false;            // this side asks
        bool stands_in = false;       // for another, and is not missed once its rails have others
        bool corrupted = false;       // what came over it was not what was sent
        base::Nanoseconds limit = 0;  // for most tries
        base::Nanoseconds since = 0;  // when it was lost

        // Kept by Recovery.
        bool missed = false;          // it has never been up
        bool up = false;              // it is back; kept in case it goes again
        std::uint32_t tries = 0;      // begun
        bool trying = false;          // a try is under way
        bool once = false;            // this side asks, too, this time
        base::Nanoseconds began = 0;  // the last try
        base::Nanoseconds next = 0;   // never: when there is a way to the peer again
        base::Nanoseconds back_off = 0;
        base::Nanoseconds rests_until = 0;
        base::Nanoseconds up_since = 0;
    };

    Recovery(Options options, std::uint64_t seed);

    /// A link was lost, now.
    void lost(Lost link, base::Nanoseconds now);
    /// A link that was asked for did not come up: it is asked for now and then.
    void missed(Lost link, base::Nanoseconds now);
    /// There is a link between these two rails: what it was, if it had been lost.
    [[nodiscard]] std::optional<Lost> back(const Pair& pair, base::Nanoseconds now);
    /// A try came to nothing.
    void failed(const Pair& pair, base::Nanoseconds now);
    /// The rail works again: whatever was lost on it is tried at once, by this side, too.
    void rail_up(std::uint32_t rail, base::Nanoseconds now);
    /// There is a link to the peer again, after there was none: what waited for that may be tried.
    void connected(std::uint32_t peer, base::Nanoseconds now);
    /// Nobody misses it any more.
    void forget(const Pair& pair);
    /// The session with the peer is over, or it said goodbye.
    void forget(std::uint32_t peer);

    /// The next link to be tried now, with the limit of this try, which counts as being tried from then on; nothing when there
    /// is none. One that makes no sense, by `may(peer, rail)`, waits for rail_up or connected.
    template <typename May>
    [[nodiscard]] std::optional<Lost> take_due(base::Nanoseconds now, May may);
    /// When take_due may have something; far away if nothing is lost.
    [[nodiscard]] base::Nanoseconds next_due() const noexcept;

    /// Whether the link was lost because its data was corrupted, and the time of the first try has not come: nobody is to
    /// connect this pair before that.
    [[nodiscard]] bool resting(const Pair& pair, base::Nanoseconds now) const noexcept;

    /// Whether it was up, and is lost now.
    [[nodiscard]] bool is_lost(const Pair& pair) const noexcept;

    /// What is lost of a peer now.
    [[nodiscard]] std::vector<Lost> of(std::uint32_t peer) const;

private:
    [[nodiscard]] Lost* find(const Pair& pair) noexcept;
    [[nodiscard]] base::Nanoseconds jittered(base::Nanoseconds time);
    [[nodiscard]] static base::Nanoseconds limit_of(const Lost& lost) noexcept;
    [[nodiscard]] base::Nanoseconds longest_wait(const Lost& lost, base::Nanoseconds now) const noexcept;
    [[nodiscard]] static bool waits(const Lost& lost) noexcept {
        return (lost.ours || lost.once) && !lost.up && !lost.trying;
    }

    Options options_;
    std::minstd_rand random_;
    std::vector<Lost> all_;  // few: what was lost in the sessions there are
};

template <typename May>
std::optional<Recovery::Lost> Recovery::take_due(base::Nanoseconds now, May may) {
    for (auto& lost : all_) {
        if (!waits(lost) || lost.next > now) continue;
        if (!may(lost.pair.peer, lost.pair.rail)) {
            lost.next = never;
            continue;
        }
        lost.trying = true;
        lost.began = now;
        ++lost.tries;
        auto due = lost;
        due.limit = limit_of(lost);
        return due;
    }
    return std::nullopt;
}

}  // namespace railmux::rails

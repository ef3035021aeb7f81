// Division: whether lone large messages are worth dividing, by what became of them.
//
// A plan goes by the rates that rails sustain. What goes to and fro may see others: while an answer comes a rail saves up what
// it then lets through at once, and has a lone message delivered in half the time that its rate says; the little that a slow
// rail was given by the plan is what is waited for. Nor does a plan know what it costs both processors to serve two rails. So,
// of messages that have all rails to themselves, some are sent whole where the plan divides, over the rail that was to have
// most of it, and what has the next one follow sooner is kept to, by sizes, (What one message
// takes does not tell: where it is late its answer is early, because that rail had time to save up.) How often the other way is
// tried depends on what that costs, or, before the first time, would by the plan: of 1 Gbit/s and 100 Mbit/s the fast one alone
// is a tenth slower, of two equal ones it takes twice as long. Of two that send to each other one tries, and the other does as
// its peer does.
//
// Threads: one thread at a time per object. Pure: time is an argument.
// Lifetime: a value; of one peer and its links; a new one for others.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "sched/policy.hpp"

namespace railmux::sched {

class Division {
public:
    /// What the peer has sent: bytes, by candidate, which only grow; and whether it tries, and we do not.
    struct Heard {
        std::span<const std::uint64_t> received;
        bool follow = false;
    };
    /// A message begins, and nothing else is under way to the peer: a plan gives the candidates these shares of it. Whether it
    /// goes whole instead, over rail().
    [[nodiscard]] bool begin(std::span<const Candidate> candidates, std::span<const std::uint64_t> shares,
                             const Heard& heard, base::Nanoseconds now);
    /// So much is still to be handed over. More than was: another message has come, and none of the two is lone.
    void left(std::uint64_t bytes) noexcept {
        if (bytes > left_) lone_ = false;
    }
    void given(std::uint64_t bytes) noexcept { left_ -= bytes < left_ ? bytes : left_; }

    /// Whether what is left of the message stays on rail(): not where that takes much longer than such messages ever did.
    [[nodiscard]] bool whole(base::Nanoseconds now) const noexcept { return lone_ && whole_ && now < patience_; }
    [[nodiscard]] std::uint32_t rail() const noexcept { return rail_; }
    /// None of it has been handed over.
    [[nodiscard]] bool untouched(std::uint64_t bytes) const noexcept {
        return lone_ && left_ == bytes_ && bytes == bytes_;
    }
    /// All of it has, and nobody has said that it arrived.
    [[nodiscard]] bool awaited() const noexcept { return lone_ && left_ == 0; }
    /// It arrived.
    void arrived(base::Nanoseconds now) noexcept;

    /// Whether lone messages of so many bytes go whole, trials left out; and how much less time they take so, in percent.
    struct Preference {
        bool whole = false;
        std::uint32_t gain_percent = 0;
    };
    [[nodiscard]] Preference preference(std::uint64_t bytes) const noexcept;

private:
    // The first ones of a row find what those before have left, in buckets and queues.
    static constexpr std::uint32_t settling = 4;
    static constexpr std::uint32_t trial = 16;
    static constexpr std::uint32_t window = 32;
    static constexpr std::uint32_t shortest_wait = 64;
    static constexpr std::uint32_t longest_wait = 1U << 16;
    // Of the time, that trials may cost: the first one, and those that follow.
    static constexpr std::uint64_t first_cost_permille = 20;
    static constexpr std::uint64_t cost_permille = 5;
    static constexpr base::Nanoseconds margin_percent = 2;  // that the other way must be better by
    static constexpr base::Nanoseconds longest = 2;         // times what is known one message counts for at most
    static constexpr base::Nanoseconds pause = 16;          // times what a message takes: who sends so rarely computes

    static constexpr auto none = ~std::uint32_t{0};

    enum Way : std::uint8_t { divided, undivided };
    /// Messages of 2^(octave-1) bytes to twice as many.
    struct Sizes {
        std::uint32_t octave = 0;
        std::uint32_t rail = none;                 // that has most of them
        std::uint64_t loss_permille = 0;           // by the plan when they were divided last, if they are not
        std::uint32_t others = 0;                  // planned otherwise, in a row
        Way home = divided;                        // how they go
        bool trying = false;                       // ... but for now
        std::uint32_t wait = longest_wait;         // messages until the next trial
        std::uint32_t skip = settling;             // that do not count
        std::uint32_t count = 0;                   // since, in a window or a trial,
        base::Nanoseconds time = 0;                // from each to the next
        base::Nanoseconds before = 0;              // in the last window
        std::array<base::Nanoseconds, 2> known{};  // on average, the less of the last two windows; 0: not known
        base::Nanoseconds begun = 0;               // the last one, if it was lone to its end: 0 if not
        base::Nanoseconds took = 0;
        [[nodiscard]] Way way() const noexcept { return trying ? other(home) : home; }
    };
    [[nodiscard]] static Way other(Way way) noexcept { return way == divided ? undivided : divided; }
    [[nodiscard]] Sizes& sizes_of(std::uint64_t bytes, std::uint64_t loss_permille);
    [[nodiscard]] std::optional<Way> way_of_peer(std::span<const std::uint64_t> received, std::size_t largest);
    [[nodiscard]] static std::uint32_t wait_for(std::uint64_t loss_permille, std::uint64_t permille) noexcept;
    [[nodiscard]] static bool better(base::Nanoseconds one, base::Nanoseconds than) noexcept {
        return 100 * one < (100 - margin_percent) * than;
    }
    static void turn(Sizes& sizes, bool trying) noexcept;
    [[nodiscard]] static bool as_before(Sizes& sizes, std::uint32_t rail, std::uint64_t loss_permille) noexcept;
    static void lead(Sizes& sizes) noexcept;
    static void follow(Sizes& sizes, Way way) noexcept;
    static void count(Sizes& sizes, base::Nanoseconds time) noexcept;
    static void end_trial(Sizes& sizes, base::Nanoseconds average) noexcept;

    std::vector<Sizes> sizes_;             // as they came
    std::vector<std::uint64_t> received_;  // as last heard
    // The message under way.
    bool lone_ = false;
    bool whole_ = false;
    std::uint32_t rail_ = 0;
    std::size_t at_ = 0;  // in sizes_
    std::uint64_t bytes_ = 0;
    std::uint64_t left_ = 0;
    base::Nanoseconds begun_ = 0;
    base::Nanoseconds patience_ = 0;
};

}  // namespace railmux::sched

// Division: whether lone large messages are worth dividing, by what became of them.
//
// A plan goes by the rates that rails sustain. What goes to and fro may see others: while an answer comes a rail saves up what
// it then lets through at once, and has a lone message delivered in half the time that its rate says; the little that a slow
// rail was given by the plan is what is waited for. Nor does a plan know what it costs both processors to serve two rails. So,
// of messages that have all rails to themselves, some are sent whole where the plan divides, over the link that was to have
// most of it, and what has the next one follow sooner is kept to, by sizes. (What one message takes does not tell: where it is
// late its answer is early, because that rail had time to save up.) How often the other way is tried depends on what that
// costs, or, before the first time, would by the plan: of 1 Gbit/s and 100 Mbit/s the fast one alone is a tenth slower, of two
// equal ones it takes twice as long. Of two that send to each other one tries, and the other does as it sees its peer do.
//
// Threads: one thread at a time per object. Pure: time is an argument.
// Lifetime: a value; of one peer and its links; a new one for others.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.hpp"

namespace railmux::sched {

class Division {
public:
    /// A plan for so much as is still to be handed over: whether a message begins with it, because before there was nothing. If
    /// it is not what was left before, another message has come, or some of one has gone: then none of them is lone.
    [[nodiscard]] bool begins(std::uint64_t bytes) noexcept;
    /// So much of it has been handed over.
    void given(std::uint64_t bytes) noexcept { left_ -= std::min(bytes, left_); }
    /// Others use the rails, or none of the links is to be preferred: what has begun, if anything, is divided as planned.
    void spoil() noexcept { lone_ = false; }

    /// What the peer has sent us of large messages: bytes, by link, which only grow; and whether it tries, and we do not.
    struct Heard {
        std::span<const std::uint64_t> received;
        bool follow = false;
    };
    /// What has just begun is all that is under way to the peer; a plan gives the links of these places these shares of it.
    /// Whether it goes whole instead, over the link of place().
    [[nodiscard]] bool begin_lone(std::span<const std::size_t> places, std::span<const std::uint64_t> shares,
                                  const Heard& heard, base::Nanoseconds now);

    /// Whether what is left of the message stays on one link: until it takes much longer than such messages do.
    [[nodiscard]] bool whole(base::Nanoseconds now) const noexcept { return lone_ && whole_ && now < patience_; }
    [[nodiscard]] base::Nanoseconds patience() const noexcept { return patience_; }
    [[nodiscard]] std::size_t place() const noexcept { return place_; }
    /// All of it has been handed over, and nobody has said that it arrived.
    [[nodiscard]] bool awaited() const noexcept { return lone_ && left_ == 0; }
    /// It arrived.
    void arrived(base::Nanoseconds now) noexcept;

    /// Whether lone messages of so many bytes take less time, by so many percent, if they go whole over the link of `place`.
    struct Preference {
        std::size_t place = 0;
        std::uint32_t gain_percent = 0;
    };
    [[nodiscard]] std::optional<Preference> preference(std::uint64_t bytes) const noexcept;

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
    static constexpr std::uint64_t unknown_loss_permille = 1000;
    static constexpr base::Nanoseconds margin_percent = 2;  // that the other way must be better by
    static constexpr base::Nanoseconds longest = 2;         // times what is known one message counts for at most
    static constexpr base::Nanoseconds patient = 4;         // times what messages take: a rail that has slowed down
    static constexpr base::Nanoseconds pause = 8;           // times what messages take: who sends so rarely computes

    static constexpr auto none = ~std::size_t{0};

    enum Way : std::uint8_t { divided, undivided };
    /// Messages of 2^(octave-1) bytes to twice as many.
    struct Sizes {
        std::uint32_t octave = 0;
        std::size_t place = none;                     // that has most of them
        std::uint64_t loss_permille = 0;              // by the plan when they were divided last, if they are not
        std::uint32_t otherwise = 0;                  // planned otherwise, in a row
        bool peer_divides = false;                    // or did
        Way home = divided;                           // how they go,
        bool trying = false;                          // unless the other way is tried
        std::uint32_t begun = 0;                      // since the last trial, or of the one under way
        std::optional<std::uint32_t> wait;            // from one trial to the next; not known before there was one
        std::uint32_t skip = settling;                // that do not count
        std::uint32_t count = 0;                      // since, in a window or a trial,
        base::Nanoseconds time = 0;                   // from each to the next
        base::Nanoseconds before = 0;                 // on average, in the last window
        std::array<base::Nanoseconds, 2> known{};     // the less of the last two of each way; 0: not known
        std::array<base::Nanoseconds, 2> delivery{};  // what they took themselves, of late
        [[nodiscard]] Way way() const noexcept { return trying ? other(home) : home; }
        [[nodiscard]] base::Nanoseconds longest_delivery() const noexcept { return std::max(delivery[0], delivery[1]); }
    };
    /// A lone message that arrived, with none begun since.
    struct Last {
        std::size_t sizes = none;
        base::Nanoseconds begun = 0;
    };
    [[nodiscard]] static Way other(Way way) noexcept { return way == divided ? undivided : divided; }
    [[nodiscard]] Sizes& sizes_of(std::uint64_t bytes);
    [[nodiscard]] std::optional<Way> way_of_peer(std::span<const std::uint64_t> received, std::size_t place);
    [[nodiscard]] static std::uint32_t wait_for(std::uint64_t loss_permille, std::uint64_t permille) noexcept;
    [[nodiscard]] static bool better(base::Nanoseconds one, base::Nanoseconds than) noexcept {
        return 100 * one < (100 - margin_percent) * than;
    }
    [[nodiscard]] static bool as_before(Sizes& sizes, std::size_t place, std::uint64_t loss_permille) noexcept;
    [[nodiscard]] static bool follows(const Sizes& sizes, std::optional<Way> peer) noexcept;
    static void follow(Sizes& sizes, Way way) noexcept;
    static void lead(Sizes& sizes, std::uint64_t loss_permille) noexcept;
    static void turn(Sizes& sizes, bool trying) noexcept;
    static void count(Sizes& sizes, base::Nanoseconds time) noexcept;
    static void end_trial(Sizes& sizes, base::Nanoseconds average) noexcept;

    std::vector<Sizes> sizes_;             // as they came
    std::vector<std::uint64_t> received_;  // by link, as last heard
    Last last_;
    Last previous_;           // ... when what is under way began
    std::uint64_t left_ = 0;  // to be handed over, of whatever messages
    // The message under way, if it is lone.
    bool lone_ = false;
    bool whole_ = false;
    std::size_t place_ = 0;
    std::size_t at_ = 0;  // in sizes_
    std::uint64_t bytes_ = 0;
    base::Nanoseconds begun_ = 0;
    base::Nanoseconds patience_ = 0;
};

}  // namespace railmux::sched

// Proven: limits of a rail's g and G, from what came through it, however little that was for the rail. A probe that is
// disturbed, by others on the rail or on the CPU, may find them a thousand times too long, and then nothing is sent that
// would show the rate.
//
// Threads: one thread at a time per object.
// Lifetime: values.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>

#include "sched/ticks.hpp"

namespace railmux::sched {

/// The least of what was noted in the last second or two.
template <typename Value>
class LeastOfLate {
public:
    void note(Value value, base::Nanoseconds now) noexcept {
        if (now >= window_end_) {
            // A window longer ago than one is forgotten.
            const bool next = now < window_end_ + window;
            before_count_ = next ? latest_count_ : 0;
            before_ = latest_;
            latest_count_ = 0;
            window_end_ = now + window;
        }
        latest_ = latest_count_++ == 0 ? value : std::min(latest_, value);
    }
    /// `enough`: one at least.
    [[nodiscard]] bool any(base::Nanoseconds now, std::uint32_t enough) const noexcept {
        return latest_count_ + before_count_ >= enough && now < window_end_ + window;
    }
    [[nodiscard]] Value least() const noexcept {
        if (before_count_ == 0) return latest_;
        return latest_count_ == 0 ? before_ : std::min(latest_, before_);
    }

private:
    static constexpr base::Nanoseconds window = base::second;

    Value latest_{};  // of the window under way
    Value before_{};  // of the one before it
    std::uint32_t latest_count_ = 0;
    std::uint32_t before_count_ = 0;
    base::Nanoseconds window_end_ = 0;
};

class Proven {
public:
    /// So much has come through since this was last called, by what is known; `all`: nothing that had come is unknown.
    /// Returns what a byte took over so many that bursts cannot explain it, if these are complete with this call, else 0.
    Ticks came_through(std::uint32_t messages, std::uint64_t bytes, base::Nanoseconds now, bool all) noexcept;

    [[nodiscard]] bool any(base::Nanoseconds now) const noexcept { return messages_.any(now, 1); }
    /// G is at most this, where there is any.
    [[nodiscard]] Ticks per_byte() const noexcept { return bytes_.least(); }
    /// g is at most this, if G is `per_byte`.
    [[nodiscard]] Ticks gap(Ticks per_byte) const noexcept {
        const auto [time, bytes] = messages_.least();
        return std::max<Ticks>(time - times(bytes, per_byte), 0);
    }

private:
    // Acknowledgements may come for 100 us of messages at once.
    static constexpr base::Nanoseconds window_time = base::millisecond;
    static constexpr std::uint32_t window_messages = 4;
    // Eight times the bursts that networks are known to pass.
    static constexpr std::uint64_t sustained_bytes = 2 * 1024 * 1024;

    // What came before a window and becomes known within it would make the rail look faster than it is: it begins when all is
    // known.
    struct Window {
        bool open = false;
        base::Nanoseconds begin = 0;
        std::uint32_t messages = 0;
        std::uint64_t bytes = 0;

        void add(std::uint32_t count, std::uint64_t sum) noexcept {
            messages += count;
            bytes += sum;
        }
        void reopen(base::Nanoseconds now, bool all) noexcept { *this = {.open = all, .begin = now}; }
        [[nodiscard]] Ticks per_byte(base::Nanoseconds now) const noexcept {
            return std::max<Ticks>(to_ticks(now - begin) / static_cast<Ticks>(std::max<std::uint64_t>(bytes, 1)), 1);
        }
    };
    struct Message {  // one of a window, on average
        Ticks time = 0;
        std::uint64_t bytes = 0;
        friend auto operator<=>(const Message&, const Message&) = default;
    };
    LeastOfLate<Message> messages_;
    LeastOfLate<Ticks> bytes_;  // time for one
    Window short_;
    Window long_;
};

}  // namespace railmux::sched

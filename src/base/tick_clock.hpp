// TickClock: nanoseconds from a counter of constant but unknown rate, kept right by a slower clock. SharedTickClock: what
// all threads read of it.
//
// A counter's rate follows from two readings of both clocks; the longer apart, the better. So the first readings serve for
// a short time only, later ones longer, and the rate is that of the last second or two, since the system's clock may be
// slewed. Time never goes back: a clock found to be ahead runs slower until it no longer is. What cannot be a rate is not
// taken for one: a machine may have slept, or moved.
//
// Threads: a TickClock is one thread's at a time; SharedTickClock is read by any and written by one at a time.
// Lifetime: values.
#pragma once

#include <atomic>
#include <cstdint>

namespace railmux::base {

/// Nanoseconds on the monotonic clock; also a span of time.
using Nanoseconds = std::int64_t;

/// ns + (ticks - since) * scale / 2^32, for `span` ticks.
struct TickLine {
    std::uint64_t since = 0;
    Nanoseconds ns = 0;
    std::uint64_t scale = 0;
    std::uint64_t span = 0;

    [[nodiscard]] Nanoseconds at(std::uint64_t ticks) const noexcept {
        return ns + static_cast<Nanoseconds>(((ticks - since) * scale) >> 32);
    }
};

class TickClock {
public:
    /// Both clocks were read at the same moment, twice, for the first time.
    TickClock(std::uint64_t ticks_before, Nanoseconds before, std::uint64_t ticks, Nanoseconds now) noexcept;

    /// Both clocks were read at the same moment again.
    void adjust(std::uint64_t ticks, Nanoseconds now) noexcept;

    [[nodiscard]] const TickLine& line() const noexcept { return line_; }

private:
    struct Reading {
        std::uint64_t ticks;
        Nanoseconds ns;
    };
    void draw(std::uint64_t ticks, Nanoseconds now, Nanoseconds shown) noexcept;

    Reading base_;  // the rate is measured from here
    Reading next_;  // ... and from here, once that is too long ago
    std::uint64_t rate_;
    TickLine line_;
};

/// A TickLine that one thread may change while others read it, without a lock (a seqlock: a reader that met a change reads
/// again).
class SharedTickClock {
public:
    static constexpr Nanoseconds unknown = INT64_MIN;

    /// The time at `ticks`; unknown when the line no longer reaches so far, or is being changed.
    [[nodiscard]] Nanoseconds at(std::uint64_t ticks) const noexcept {
        const auto version = version_.load(std::memory_order_acquire);
        const TickLine line{.since = since_.load(std::memory_order_acquire),
                            .ns = ns_.load(std::memory_order_acquire),
                            .scale = scale_.load(std::memory_order_acquire),
                            .span = span_.load(std::memory_order_acquire)};
        const bool whole = (version & 1) == 0 && version_.load(std::memory_order_relaxed) == version;
        return whole && ticks - line.since < line.span ? line.at(ticks) : unknown;
    }

    void set(const TickLine& line) noexcept {
        const auto version = version_.load(std::memory_order_relaxed);
        version_.store(version + 1, std::memory_order_relaxed);
        since_.store(line.since, std::memory_order_release);
        ns_.store(line.ns, std::memory_order_release);
        scale_.store(line.scale, std::memory_order_release);
        span_.store(line.span, std::memory_order_release);
        version_.store(version + 2, std::memory_order_release);
    }

private:
    std::atomic<std::uint32_t> version_{0};
    std::atomic<std::uint64_t> since_{0};
    std::atomic<Nanoseconds> ns_{0};
    std::atomic<std::uint64_t> scale_{0};
    std::atomic<std::uint64_t> span_{0};
};

}  // namespace railmux::base

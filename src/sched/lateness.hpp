// Lateness: the rate of a rail from trains, what was sent together over the idle rail, that took longer than thought.
//
// Networks pass bursts faster than what they sustain: a token bucket lets a train through at once, or part of it, and fills
// again at the rail's rate while nobody sends. So a train in time shows nothing, and a late one only that the rail is slower
// than thought, not by how much. But when a train ends late nothing is left in the bucket, so between the ends of two late
// ones the rail has passed what it can, idle moments included, if it was late for most of the time: bytes over time is its
// rate then. A train is late, too, if a peer was busy elsewhere: one shows nothing, so the latest one of several is left out,
// and the times of the others are added up. Not each one is looked at: what came through since the one before is thought to
// have been as late as this one.
//
// Threads: one thread at a time per object.
// Lifetime: a value.
#pragma once

#include <cstdint>

#include "sched/ticks.hpp"

namespace railmux::sched {

/// The end of something that a rail has carried.
struct Mark {
    base::Nanoseconds time = 0;  // when it was there; 0: never
    std::uint64_t bytes = 0;     // of all that was ever handed to the rail, until then
};

class Lateness {
public:
    /// A train was not late that ended there.
    void in_time(const Mark& end) noexcept {
        const auto time = end.time - begin_.time;
        if (time >= patience && late_time_ < time / 8) open_ = false;
        if (!follows(end)) return;
        marked_ = end;
        marked_late_ = false;
    }
    /// A train of `bytes` was late that ended there, after `service` on the rail. Returns G, if at least `window` and enough
    /// bytes after an earlier late one show it, else 0.
    [[nodiscard]] Ticks late(std::uint64_t bytes, base::Nanoseconds service, const Mark& end,
                             base::Nanoseconds window) noexcept;
    /// Something else happened on the rail, when so many bytes had been handed to it: what is told of before shows nothing.
    void forget(std::uint64_t handed) noexcept {
        open_ = false;
        floor_ = handed;
    }

private:
    static constexpr std::uint64_t window_bytes = 32 * 1024;
    static constexpr std::uint32_t enough = 3;
    // Trains that were late now and then within that were so for reasons of their own.
    static constexpr base::Nanoseconds patience = 20 * base::millisecond;

    /// From one train that was looked at to the next.
    struct Piece {
        base::Nanoseconds late = 0;  // so long something was late
        base::Nanoseconds time = 0;
        std::uint64_t bytes = 0;
        void operator+=(const Piece& next) noexcept {
            late += next.late;
            time += next.time;
            bytes += next.bytes;
        }
    };

    void reopen(const Mark& end) noexcept {
        const auto floor = floor_;
        *this = {};
        floor_ = floor;
        open_ = marked_late_ = true;
        begin_ = marked_ = end;
    }
    /// What is told of two links may come in the other order.
    [[nodiscard]] bool follows(const Mark& end) const noexcept {
        return end.time > marked_.time && end.bytes > marked_.bytes;
    }
    [[nodiscard]] Piece since_mark(std::uint64_t bytes, base::Nanoseconds service, const Mark& end) const noexcept;

    bool open_ = false;
    std::uint64_t floor_ = 0;
    Mark begin_;                       // the end of a late train
    std::uint32_t late_count_ = 0;     // since then so many trains were late
    base::Nanoseconds late_time_ = 0;  // and took so long
    std::uint64_t late_bytes_ = 0;     // and had so many bytes
    Mark marked_;                      // the end of the train that was looked at last,
    bool marked_late_ = false;         // ... which was late
    Piece train_;                      // the last of them, of which several moments may be told
    Piece latest_;                     // the latest of the late ones, which may be a peer's doing
};

}  // namespace railmux::sched

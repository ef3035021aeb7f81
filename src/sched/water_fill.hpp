// WaterFill: how much each rail takes of a large message so that all end together. Rail i delivers x bytes at
// offset_i + x G_i: a vessel whose floor is at offset_i and which is 1/G_i wide. All that are used end at T, where the sum
// of (T - offset_i) / G_i is the message; a rail whose floor lies above T stays dry. Rails are taken in the order of their
// floors until the next one lies too high: exact, in one pass.
//
// Integers throughout, so that a plan is the same on every machine: 2^63 bytes times a width of 2^48 fit 128 bits.
//
// Threads: one thread at a time per object.
// Lifetime: a value, kept by its user so that its memory is allocated once, whatever the number of rails.
#pragma once

#include <span>
#include <vector>

#include "sched/ticks.hpp"

namespace railmux::sched {

__extension__ using Wide = __int128;

class WaterFill {
public:
    explicit WaterFill(std::size_t rails) {
        vessels_.reserve(rails);
        all_.reserve(rails);
    }

    void clear() noexcept { vessels_.clear(); }
    /// Candidate `place` could begin at `offset`; less than `smallest` bytes are not worth its while.
    void add(std::size_t place, Ticks offset, Ticks per_byte, std::uint64_t smallest);

    /// Leaves out rails until no share of `bytes` is below its smallest; returns how long all of it takes.
    [[nodiscard]] Wide fill(std::uint64_t bytes) noexcept;

    struct Single {
        std::size_t place = 0;
        Wide end = 0;
    };
    /// Of the rails that the last fill used, the one that would end first with all of it.
    [[nodiscard]] Single best_single(std::uint64_t bytes) const noexcept;

    /// The shares of the last fill, by place; they add up to `bytes`.
    void pour(std::uint64_t bytes, std::span<std::uint64_t> shares) const noexcept;

private:
    static constexpr int width_bits = 48;

    struct Vessel {
        std::size_t place;
        Ticks offset;
        Ticks per_byte;
        std::int64_t width;  // 2^48 / per_byte
        std::uint64_t smallest;
    };

    void raise(std::uint64_t bytes) noexcept;
    void leave_out(std::uint64_t bytes, bool also_large) noexcept;
    [[nodiscard]] bool any_too_small() const noexcept;
    [[nodiscard]] std::size_t least_missed(bool also_large) const noexcept;
    [[nodiscard]] bool too_small(const Vessel& vessel) const noexcept { return share(vessel) < vessel.smallest; }
    [[nodiscard]] std::uint64_t share(const Vessel& vessel) const noexcept {
        return static_cast<std::uint64_t>(((end_ - vessel.offset) * vessel.width) >> width_bits);
    }

    std::vector<Vessel> vessels_;  // by offset
    std::vector<Vessel> all_;      // scratch of fill
    std::size_t filled_ = 0;       // the first ones are used
    Wide end_ = 0;
};

}  // namespace railmux::sched

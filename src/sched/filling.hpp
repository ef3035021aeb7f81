// Filling: how a large message is split so that all rails that carry a part end together, by filling up water: rail i has
// delivered x bytes at offset_i + x G_i, so at the time T it holds (T - offset_i) / G_i of them, and T is where the sum over
// all rails with an offset before T is the size. Exact, by taking the rails in the order of their offsets until the next one
// would start too late.
//
// In doubles: ratios of rates are what it is about, 53 bits of them are more than any rail is known by, and it runs once for
// each piece of 16 KiB or more, not for each message.
//
// Threads and lifetime: a value for one split.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sched/ticks.hpp"

namespace railmux::sched {

class Filling {
public:
    /// Of more rails than this the earliest are considered; the others would get no share worth it.
    static constexpr std::size_t most_rails = 32;

    explicit Filling(std::uint64_t bytes) noexcept : bytes_(bytes) {}

    /// Candidate `place` can begin to deliver at `offset`, and then takes `per_byte`.
    void add(std::size_t place, Ticks offset, Ticks per_byte) noexcept;

    /// Fills the rails that are there; at least one.
    void fill() noexcept;
    /// Takes out the rail with the smallest share if that is below `share`; true if fill must be called again.
    bool drop_smaller_than(std::uint64_t share) noexcept;

    /// Rails that got a share.
    [[nodiscard]] std::size_t used() const noexcept { return used_; }
    /// The candidate that would end first if it carried everything, and whether the split ends so much before it.
    [[nodiscard]] std::size_t best_alone() const noexcept { return alone_; }
    [[nodiscard]] bool beats_one_rail_by(std::uint32_t percent) const noexcept;
    /// The shares, each in its candidate's place; they add up to the size.
    void shares(std::span<std::uint64_t> shares) const noexcept;

private:
    struct Rail {
        double offset = 0;  // ticks
        double rate = 0;    // bytes a tick
        std::size_t place = 0;
    };
    [[nodiscard]] double share(const Rail& rail) const noexcept { return (end_ - rail.offset) * rail.rate; }

    std::uint64_t bytes_;
    std::array<Rail, most_rails> rails_;  // by offset
    std::size_t count_ = 0;
    std::size_t used_ = 0;
    double end_ = 0;  // T
    std::size_t alone_ = 0;
    double alone_end_ = 0;
};

}  // namespace railmux::sched

// Processors: of the links to a peer whose bytes the processors of both ends move (shared memory, the loopback), the one that
// is used. No hardware works beside them: what goes over a second one waits for the processor that is busy with the first, and
// makes that one look slow. So they count as one from when they are up, and all but the fastest are spare.
//
// The fastest by what is known of them now, by their models and by traffic, whatever they are called. What slows one of them
// down slows down all, and shows in the one that is used: that one is left only for one that takes half as long.
//
// Threads: one thread at a time per object. Pure.
// Lifetime: part of a conversation.
#pragma once

#include <cstdint>
#include <span>

#include "sched/policy.hpp"

namespace railmux::sched {

class Processors {
public:
    /// Marks as spare all but the one that is used, of those that are moved so.
    void choose(std::span<Candidate> candidates) noexcept;
    /// Whether these, as one, are themselves spare to others.
    void spare(bool all) noexcept { spare_ = all; }

private:
    // Models are known best up to the largest frame of a quick probe (8 KiB): what they say of larger ones is G alone.
    static constexpr std::uint64_t typical_bytes = 4096;

    std::uint32_t rail_ = ~std::uint32_t{0};  // that of the one that is used
    bool spare_ = false;
};

}  // namespace railmux::sched

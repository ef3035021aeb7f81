// Policy: which rail takes a message, and how a large one is split over the rails.
//
// Pure: no sockets, no threads, no clock of its own; time is an argument, so that the same object runs inside a process,
// in unit tests under a fake clock, and in the simulator.
// Threads: one thread at a time per object; a context has one policy for all its peers.
// Lifetime: owned by the context.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/clock.hpp"

namespace railmux::sched {

/// A link that could carry the message, as the policy sees it.
struct Candidate {
    std::uint32_t rail = 0;          // local rail, the same number whatever the destination
    std::uint64_t speed_bps = 0;     // link speed; 0: unknown
    std::uint64_t queued_bytes = 0;  // handed to this rail and not yet taken by the network
};

class Policy {
public:
    virtual ~Policy() = default;
    Policy() = default;
    Policy(const Policy&) = delete;
    Policy& operator=(const Policy&) = delete;

    [[nodiscard]] virtual std::string_view name() const noexcept = 0;

    /// The place in `candidates` (never empty) of the rail that takes a message of `bytes`.
    [[nodiscard]] virtual std::size_t choose(std::span<const Candidate> candidates, std::uint64_t bytes,
                                             base::Nanoseconds now) noexcept = 0;

    /// How many of `bytes` each candidate carries; `shares` is as long as `candidates` and adds up to `bytes`.
    virtual void split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
                       std::span<std::uint64_t> shares) noexcept = 0;

    /// `bytes` that `rail` carried were handed over at `sent` and known to have arrived at `acknowledged`.
    virtual void delivered([[maybe_unused]] std::uint32_t rail, [[maybe_unused]] std::uint64_t bytes,
                           [[maybe_unused]] base::Nanoseconds sent,
                           [[maybe_unused]] base::Nanoseconds acknowledged) noexcept {}
};

/// The policy with that name (`fixed`, `round_robin`, `weighted_round_robin`) for a process with `rails` local rails.
/// Throws Error(invalid_config) for an unknown name.
[[nodiscard]] std::unique_ptr<Policy> make_policy(std::string_view name, std::size_t rails);

}  // namespace railmux::sched

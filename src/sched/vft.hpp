// Vft: virtual finishing time. A message goes over the rail that will deliver it first; a large one is split so that all
// chosen rails finish together. A. Lichei, "Analysis and Optimization of the Packet Scheduler in Open MPI" (2006),
// chapter 4; docs/scheduling.md has the formulas and what differs.
//
// Each local rail has one clock, shared by all destinations: when it will be free. The clock is the prediction; the bytes
// not yet acknowledged are the truth that bounds it, so that a rail that was faster than predicted is free at once.
//
// Threads and lifetime: as Policy.
#pragma once

#include <optional>
#include <vector>

#include "sched/policy.hpp"
#include "sched/water_fill.hpp"

namespace railmux::sched {

/// What the decision takes into account, stage by stage as in the thesis, so that each step's worth can be measured.
enum class VftStage : std::uint8_t {
    same_size,      // every message takes as long as one of 1 KiB: turns by rate
    size_aware,     // its size counts: the rail is busy for s G
    pause_aware,    // and the gap g between messages
    latency_aware,  // and L, o_s and o_r until it is delivered
    overlap_aware,  // and what o_s, o_r and L grow by with the size (default)
};

struct VftOptions {
    VftStage stage = VftStage::overlap_aware;
    std::uint32_t margin_percent = 5;         // a slower rail, or a split, must finish earlier by this to be used
    std::uint64_t smallest_share = 8 * 1024;  // of a split: so much is worth any rail's overhead
    base::Nanoseconds begin = 0;              // no time before; ticks are counted from there
};

class Vft final : public Policy {
public:
    // A small message between ends of which one does not keep up goes where so many bytes would.
    static constexpr std::uint64_t behind_bytes = 16 * 1024;
    // A light frame leaves a stream that it can join for a gain of this part of its delivery, where others do for the margin.
    static constexpr Ticks joined_part = 3;
    // A light frame goes along with heavy ones (place_along) if it does not wait for longer there: a call, and a packet, take
    // the two processors some microseconds, and the heavy ones wait as long. Bulk takes a rail for longer than that.
    static constexpr Ticks longest_along = to_ticks(200 * base::microsecond);

    explicit Vft(std::size_t rails, const VftOptions& options = {})
        : options_(options), clocks_(rails), water_(rails) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "vft"; }
    [[nodiscard]] std::size_t choose(std::span<const Candidate> candidates, std::uint64_t bytes,
                                     base::Nanoseconds now) noexcept override;
    [[nodiscard]] std::size_t most_rested(std::span<const Candidate> candidates,
                                          std::uint64_t bytes) const noexcept override;
    [[nodiscard]] Ticks lead(std::span<const Candidate> candidates, std::size_t place, std::uint64_t bytes,
                             base::Nanoseconds now) const noexcept override;
    void split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
               std::span<std::uint64_t> shares) noexcept override;
    [[nodiscard]] bool replans() const noexcept override { return true; }
    using Policy::charge;
    void charge(const Candidate& candidate, std::uint64_t bytes, std::uint32_t messages,
                base::Nanoseconds now) noexcept override;
    void left(const Candidate& candidate, std::uint64_t backlog, base::Nanoseconds then) noexcept override;
    [[nodiscard]] bool predicts() const noexcept override { return true; }
    [[nodiscard]] Ticks delivery(const Candidate& candidate, std::uint64_t bytes,
                                 base::Nanoseconds now) const noexcept override;
    [[nodiscard]] std::unique_ptr<Policy> clone() const override { return std::make_unique<Vft>(*this); }

private:
    struct Clock {
        Ticks free = 0;  // when the rail is free again
        // By what was charged, whenever: they wrap around.
        std::uint64_t time_given = 0;  // while it had turns by rate
        std::uint64_t bytes_given = 0;
        Ticks gap_per_byte = 0;   // what a byte of its backlog takes besides G: gaps over bytes
        Ticks gaps = 0;           // of the messages charged lately
        std::uint64_t bytes = 0;  // of these
    };

    [[nodiscard]] Ticks ticks(base::Nanoseconds now) const noexcept { return to_ticks(now - options_.begin); }
    [[nodiscard]] Ticks idle_delivery(const Cost& cost, std::uint64_t bytes) const noexcept;
    [[nodiscard]] Ticks idle_delivery_by_less(const Cost& cost, std::uint64_t bytes) const noexcept;
    [[nodiscard]] std::uint64_t smallest_share(const Cost& cost) const noexcept;
    [[nodiscard]] Ticks gap(const Cost& cost) const noexcept;
    [[nodiscard]] Ticks margin(Ticks time) const noexcept { return time / 100 * options_.margin_percent; }
    [[nodiscard]] std::size_t spread_out(std::span<const Candidate> candidates, std::uint64_t bytes) noexcept;
    [[nodiscard]] std::size_t next_in_turn(std::span<const Candidate> candidates, std::uint64_t bytes,
                                           bool by_rate) noexcept;
    [[nodiscard]] std::size_t fastest_alone(std::span<const Candidate> candidates, std::uint64_t bytes) const noexcept;
    [[nodiscard]] Ticks post_of_its_own(const Candidate& first, const Cost& fastest,
                                        std::uint64_t bytes) const noexcept;
    [[nodiscard]] Ticks wait(const Candidate& candidate, Ticks now) const noexcept;
    [[nodiscard]] Ticks wait_of(const Candidate& candidate, std::uint64_t bytes, Ticks now) const noexcept;
    [[nodiscard]] Ticks preferred_by(const Candidate& candidate, Ticks idle) const noexcept;
    [[nodiscard]] std::optional<bool> settled(std::span<const Candidate> candidates, std::size_t place,
                                              std::uint64_t bytes) const noexcept;
    [[nodiscard]] Ticks patience(const Candidate& chosen, const Candidate& other, std::uint64_t bytes,
                                 bool fastest) const noexcept;

    VftOptions options_;
    std::vector<Clock> clocks_;  // by local rail
    WaterFill water_;            // of split
};

}  // namespace railmux::sched

// The baselines: policies without a model, kept so that anyone can compare.
//
// Threads and lifetime: as Policy.
#pragma once

#include <limits>
#include <vector>

#include "sched/policy.hpp"

namespace railmux::sched {

/// Everything over the first candidate: the fastest rail as the rail manager orders them.
class Fixed final : public Policy {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return "fixed"; }
    [[nodiscard]] std::size_t choose(std::span<const Candidate> candidates, std::uint64_t bytes,
                                     base::Nanoseconds now) noexcept override;
    void split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
               std::span<std::uint64_t> shares) noexcept override;
    [[nodiscard]] Ticks lead(std::span<const Candidate> /*candidates*/, std::size_t /*place*/, std::uint64_t /*bytes*/,
                             base::Nanoseconds /*now*/) const noexcept override {
        return std::numeric_limits<Ticks>::max();
    }
    [[nodiscard]] std::unique_ptr<Policy> clone() const override { return std::make_unique<Fixed>(*this); }
};

/// One message to each rail in turn; large messages in equal parts.
class RoundRobin final : public Policy {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return "round_robin"; }
    [[nodiscard]] std::size_t choose(std::span<const Candidate> candidates, std::uint64_t bytes,
                                     base::Nanoseconds now) noexcept override;
    void split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
               std::span<std::uint64_t> shares) noexcept override;
    [[nodiscard]] std::unique_ptr<Policy> clone() const override { return std::make_unique<RoundRobin>(*this); }

private:
    std::size_t turn_ = 0;
};

/// Rails take turns in proportion to their link speed, smoothly: the rail with the largest credit goes next (the
/// "smooth weighted round robin" of nginx). Equal weights while any speed is unknown. Weights count messages; bytes
/// follow because every message of a burst has about the same size, which is exactly this baseline's weakness.
class WeightedRoundRobin final : public Policy {
public:
    explicit WeightedRoundRobin(std::size_t rails) : credit_(rails, 0) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "weighted_round_robin"; }
    [[nodiscard]] std::size_t choose(std::span<const Candidate> candidates, std::uint64_t bytes,
                                     base::Nanoseconds now) noexcept override;
    void split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
               std::span<std::uint64_t> shares) noexcept override;
    [[nodiscard]] std::unique_ptr<Policy> clone() const override { return std::make_unique<WeightedRoundRobin>(*this); }

private:
    std::vector<std::int64_t> credit_;  // by local rail
};

/// Weighted fair queueing (A. Demers, S. Keshav, S. Shenker, 1989) turned around: the rails are the flows. Each rail has a
/// share by its link speed, or an equal one from when a rail of unknown speed is seen; a message goes where its virtual
/// finishing time, bytes over share, is least. All bytes count, those of bulk too; but a rail that was left idle is owed no
/// more than a piece of bulk. Nothing is known of latency, of overheads, or of what the rails really do.
class Wfq final : public Policy {
public:
    explicit Wfq(std::size_t rails) : finish_(rails, 0) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "wfq"; }
    [[nodiscard]] std::size_t choose(std::span<const Candidate> candidates, std::uint64_t bytes,
                                     base::Nanoseconds now) noexcept override;
    void split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds now,
               std::span<std::uint64_t> shares) noexcept override;
    using Policy::charge;
    void charge(const Candidate& candidate, std::uint64_t bytes, std::uint32_t messages,
                base::Nanoseconds now) noexcept override;
    [[nodiscard]] std::unique_ptr<Policy> clone() const override { return std::make_unique<Wfq>(*this); }

private:
    static constexpr std::uint64_t unit = 1'000'000;      // of virtual time: a byte over a share of 1
    static constexpr std::uint64_t equal_share = 10'000;  // as 10 Gbit/s: 2^64 is reached after 180 PB on one rail
    // Bytes that one rail may be behind the others by: less, and a slow rail would never have its turn behind a fast one.
    static constexpr std::uint64_t most_credit = 256 * 1024;

    [[nodiscard]] std::uint64_t share(const Candidate& candidate) const noexcept;
    [[nodiscard]] std::uint64_t start(const Candidate& candidate) const noexcept;
    [[nodiscard]] std::uint64_t finish(const Candidate& candidate, std::uint64_t bytes) const noexcept;
    void look_at_speed(const Candidate& candidate) noexcept;

    std::vector<std::uint64_t> finish_;  // by local rail
    std::uint64_t latest_ = 0;           // start in virtual time
    bool equal_ = false;
};

}  // namespace railmux::sched

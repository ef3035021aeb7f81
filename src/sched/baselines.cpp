#include "sched/baselines.hpp"

#include <algorithm>
#include <cassert>
#include <string>

#include <railmux/error.hpp>

#include "sched/vft.hpp"

namespace railmux::sched {

namespace {

/// Weight in Mbit/s: fine enough to tell rails apart, small enough that a product with a message size fits 64 bits.
std::uint64_t weight(const Candidate& candidate) noexcept {
    return std::max<std::uint64_t>(candidate.speed_bps / 1'000'000, 1);
}

bool speeds_known(std::span<const Candidate> candidates) noexcept {
    return std::all_of(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.speed_bps != 0; });
}

/// Shares in proportion to the weights; what rounding leaves over goes to the first candidate.
template <typename Weight>
void split_by(std::span<const Candidate> candidates, std::uint64_t bytes, std::span<std::uint64_t> shares,
              Weight weight_of) noexcept {
    std::uint64_t total = 0;
    for (const auto& candidate : candidates) total += weight_of(candidate);
    assert(total > 0);  // there are candidates, and no weight is 0
    std::uint64_t given = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        // Dividing first keeps the product within 64 bits; the remainder carries what that loses.
        const auto w = weight_of(candidates[i]);
        shares[i] = bytes / total * w + bytes % total * w / total;
        given += shares[i];
    }
    shares[0] += bytes - given;
}

/// Shares in proportion to the link speeds; equal ones while any speed is unknown.
void split_by_speed(std::span<const Candidate> candidates, std::uint64_t bytes,
                    std::span<std::uint64_t> shares) noexcept {
    const bool known = speeds_known(candidates);
    split_by(candidates, bytes, shares, [known](const Candidate& c) { return known ? weight(c) : std::uint64_t{1}; });
}

}  // namespace

std::size_t Fixed::choose(std::span<const Candidate>, std::uint64_t, base::Nanoseconds) noexcept { return 0; }

void Fixed::split(std::span<const Candidate>, std::uint64_t bytes, base::Nanoseconds,
                  std::span<std::uint64_t> shares) noexcept {
    std::fill(shares.begin(), shares.end(), 0);
    shares[0] = bytes;
}

std::size_t RoundRobin::choose(std::span<const Candidate> candidates, std::uint64_t, base::Nanoseconds) noexcept {
    return turn_++ % candidates.size();
}

void RoundRobin::split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds,
                       std::span<std::uint64_t> shares) noexcept {
    split_by(candidates, bytes, shares, [](const Candidate&) { return std::uint64_t{1}; });
}

std::size_t WeightedRoundRobin::choose(std::span<const Candidate> candidates, std::uint64_t,
                                       base::Nanoseconds) noexcept {
    const bool known = speeds_known(candidates);
    std::int64_t total = 0;
    std::size_t best = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const auto w = known ? static_cast<std::int64_t>(weight(candidates[i])) : 1;
        auto& credit = credit_[candidates[i].rail];
        credit += w;
        total += w;
        if (credit > credit_[candidates[best].rail]) best = i;
    }
    credit_[candidates[best].rail] -= total;
    return best;
}

void WeightedRoundRobin::split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds,
                               std::span<std::uint64_t> shares) noexcept {
    split_by_speed(candidates, bytes, shares);
}

std::size_t Wfq::choose(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds) noexcept {
    for (const auto& candidate : candidates) look_at_speed(candidate);
    std::size_t first = 0;
    for (std::size_t i = 1; i < candidates.size(); ++i) {
        if (finish(candidates[i], bytes) < finish(candidates[first], bytes)) first = i;
    }
    return first;
}

void Wfq::split(std::span<const Candidate> candidates, std::uint64_t bytes, base::Nanoseconds,
                std::span<std::uint64_t> shares) noexcept {
    split_by_speed(candidates, bytes, shares);
}

void Wfq::charge(const Candidate& candidate, std::uint64_t bytes, std::uint32_t messages, base::Nanoseconds) noexcept {
    look_at_speed(candidate);
    const auto begin = start(candidate);
    finish_[candidate.rail] = finish(candidate, bytes + messages - 1);
    latest_ = std::max(latest_, begin);
}

std::uint64_t Wfq::share(const Candidate& candidate) const noexcept { return equal_ ? equal_share : weight(candidate); }

/// When the candidate would begin with a message, in virtual time.
std::uint64_t Wfq::start(const Candidate& candidate) const noexcept {
    const auto credit = most_credit * unit / share(candidate);
    return std::max(finish_[candidate.rail], latest_ - std::min(latest_, credit));
}

/// When it would end with one of `bytes`. An empty one counts as well.
std::uint64_t Wfq::finish(const Candidate& candidate, std::uint64_t bytes) const noexcept {
    return start(candidate) + (bytes + 1) * unit / share(candidate);
}

/// One unknown speed makes all shares equal; what was counted by speed does not compare with what follows.
void Wfq::look_at_speed(const Candidate& candidate) noexcept {
    if (equal_ || candidate.speed_bps != 0) return;
    equal_ = true;
    std::fill(finish_.begin(), finish_.end(), latest_);
}

std::unique_ptr<Policy> make_policy(std::string_view name, std::size_t rails, base::Nanoseconds begin) {
    if (name == "vft") return std::make_unique<Vft>(rails, VftOptions{.begin = begin});
    if (name == "wfq") return std::make_unique<Wfq>(rails);
    if (name == "fixed") return std::make_unique<Fixed>();
    if (name == "round_robin") return std::make_unique<RoundRobin>();
    if (name == "weighted_round_robin") return std::make_unique<WeightedRoundRobin>(rails);
    throw Error(ErrorCode::invalid_config, "unknown policy '" + std::string(name) + "'",
                "use one of " + std::string(policy_names));
}

}  // namespace railmux::sched

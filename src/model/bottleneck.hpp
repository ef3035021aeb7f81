// Bottlenecks: rails that end in one port, one switch, one uplink or one CPU. Rails are measured alone, then in pairs;
// those that bring less together than the sum share something, and its capacity is what they reach.
//
// Threads: pure functions over values.
// Lifetime: own what they return.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <railmux/loggp.hpp>

namespace railmux::model {

/// Two rails flooded together; places in the list of single capacities.
struct PairCapacity {
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    double bps = 0;
};

struct Bottleneck {
    std::vector<std::uint32_t> rails;  // ascending, at least two
    double bps = 0;                    // of all of them together
};

struct BottleneckOptions {
    double noise = 0.08;        // what independent rails may lack of their sum, in a measurement
    double adds_at_most = 0.7;  // of the smaller rail's capacity; a rail that adds more is taken as independent
};

/// The groups that share something, the largest first. A rail may be in several: a-b and b-c share two different things
/// when a and c share nothing.
[[nodiscard]] std::vector<Bottleneck> find_bottlenecks(std::span<const double> single_bps,
                                                       std::span<const PairCapacity> pairs,
                                                       const BottleneckOptions& options = {});

/// Whether two rails that bring `a` and `b` alone and `together` at the same time share something.
[[nodiscard]] bool share_bottleneck(double a_bps, double b_bps, double together_bps,
                                    const BottleneckOptions& options = {}) noexcept;

/// How much `adding` brings on top of `to`: 0 nothing, 1 all that it has.
[[nodiscard]] double added_share(double to_bps, double adding_bps, double together_bps) noexcept;

/// "rail B adds 3 % to rail A at 1 MiB: they share a bottleneck of 941 Mbit/s", or that they do not.
[[nodiscard]] std::string describe_pair(std::string_view rail, std::string_view added, std::uint64_t bytes,
                                        double rail_bps, double added_bps, double together_bps,
                                        const BottleneckOptions& options = {});

/// The model of a rail while all rails of its group send: each gets its part of the common capacity by its own speed, so
/// that all slow down alike. `sum_bps` is that of the single capacities.
[[nodiscard]] LogGP while_shared(LogGP model, double sum_bps, double common_bps);

/// "941 Mbit/s".
[[nodiscard]] std::string readable_bps(double bps);

}  // namespace railmux::model

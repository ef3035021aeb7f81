#include "model/bottleneck.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include <fmt/format.h>

namespace railmux::model {

namespace {

using Set = std::uint64_t;  // of rails, as bits
constexpr std::size_t max_rails = 64;

/// All maximal sets of rails that share pairwise (Bron and Kerbosch, without pivots: there are few rails).
void collect(std::span<const Set> neighbours, Set chosen, Set open, Set seen, std::vector<Set>& groups) {
    if (open == 0) {
        if (seen == 0 && std::popcount(chosen) > 1) groups.push_back(chosen);
        return;
    }
    while (open != 0) {
        const auto rail = static_cast<std::size_t>(std::countr_zero(open));
        const auto bit = Set{1} << rail;
        collect(neighbours, chosen | bit, open & neighbours[rail], seen & neighbours[rail], groups);
        open &= ~bit;
        seen |= bit;
    }
}

/// Each pair in a group reaches what the whole reaches, if it can fill it, as may a single rail: the most that any reached.
double capacity(Set group, std::span<const double> single_bps, std::span<const PairCapacity> pairs) noexcept {
    double bps = 0;
    for (auto left = group; left != 0; left &= left - 1) {
        bps = std::max(bps, single_bps[static_cast<std::size_t>(std::countr_zero(left))]);
    }
    for (const auto& pair : pairs) {
        const auto both = Set{1} << pair.a | Set{1} << pair.b;
        if ((group & both) == both) bps = std::max(bps, pair.bps);
    }
    return bps;
}

}  // namespace

std::vector<Bottleneck> find_bottlenecks(std::span<const double> single_bps, std::span<const PairCapacity> pairs,
                                         const BottleneckOptions& options) {
    const auto count = std::min(single_bps.size(), max_rails);
    std::array<Set, max_rails> neighbours{};
    Set shared = 0;
    for (const auto& [a, b, bps] : pairs) {
        if (a >= count || b >= count || a == b || !share_bottleneck(single_bps[a], single_bps[b], bps, options))
            continue;
        neighbours[a] |= Set{1} << b;
        neighbours[b] |= Set{1} << a;
        shared |= Set{1} << a | Set{1} << b;
    }
    std::vector<Set> groups;
    collect(neighbours, 0, shared, 0, groups);
    std::ranges::stable_sort(groups, std::greater{}, [](Set group) { return std::popcount(group); });
    std::vector<Bottleneck> result;
    for (const auto group : groups) {
        auto& bottleneck = result.emplace_back();
        for (auto left = group; left != 0; left &= left - 1) {
            bottleneck.rails.push_back(static_cast<std::uint32_t>(std::countr_zero(left)));
        }
        bottleneck.bps = capacity(group, single_bps, pairs);
    }
    return result;
}

bool share_bottleneck(double a, double b, double together, const BottleneckOptions& options) noexcept {
    const double sum = a + b;
    return sum - together > options.noise * sum &&
           added_share(std::max(a, b), std::min(a, b), together) < options.adds_at_most;
}

double added_share(double to_bps, double adding_bps, double together_bps) noexcept {
    return adding_bps > 0 ? std::clamp((together_bps - to_bps) / adding_bps, 0.0, 1.0) : 0;
}

std::string describe_pair(std::string_view rail, std::string_view added, std::uint64_t bytes, double rail_bps,
                          double added_bps, double together_bps, const BottleneckOptions& options) {
    const auto size = bytes % (1 << 20) == 0   ? fmt::format("{} MiB", bytes >> 20)
                      : bytes % (1 << 10) == 0 ? fmt::format("{} KiB", bytes >> 10)
                                               : fmt::format("{} bytes", bytes);
    const double percent = rail_bps > 0 ? std::max(0.0, 100 * (together_bps / rail_bps - 1)) : 0;
    auto text = fmt::format("rail {} adds {:.0f} % to rail {} at {}: ", added, percent, rail, size);
    if (!share_bottleneck(rail_bps, added_bps, together_bps, options)) return text + "they share nothing that counts";
    return text + fmt::format("they share a bottleneck of {}", readable_bps(std::max(together_bps, rail_bps)));
}

LogGP while_shared(LogGP model, double sum_bps, double common_bps) {
    if (common_bps <= 0 || sum_bps <= common_bps) return model;
    for (auto& range : model.ranges) range.G.ns *= sum_bps / common_bps;
    return model;
}

std::string readable_bps(double bps) {
    constexpr std::array units{"bit/s", "kbit/s", "Mbit/s", "Gbit/s"};
    std::size_t unit = 0;
    while (bps >= 1000 && unit + 1 < units.size()) {
        bps /= 1000;
        ++unit;
    }
    return bps < 10 ? fmt::format("{:.2f} {}", bps, units[unit])
                    : fmt::format("{:.{}f} {}", bps, bps < 100 ? 1 : 0, units[unit]);
}

}  // namespace railmux::model

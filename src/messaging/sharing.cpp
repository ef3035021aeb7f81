// Engine: which rails to a peer share a bottleneck, measured on demand.
#include <algorithm>
#include <array>

#include "messaging/engine.hpp"
#include "model/bottleneck.hpp"

namespace railmux::messaging {

namespace {
// What is said in words is said for a size at which bandwidth is all that counts.
constexpr std::uint64_t said_for = std::uint64_t{1} << 20;
// The median of so many floods counts: a process that was away for a moment makes one seem slower, or faster.
constexpr std::size_t floods = 3;

double median(std::array<double, floods> rates) {
    std::ranges::sort(rates);
    return rates[floods / 2];
}
}  // namespace

/// What links bring at the same time, in bits per second; 0 if one of them died or fell silent.
double Engine::flood(std::span<const std::uint32_t> links, const std::string& names, const SharingOptions& options) {
    const auto patience = static_cast<base::Nanoseconds>(config_.number("connect.patience"));
    auto next_report = now();
    const auto over = [&] {
        const auto done = rails_.survey().flooded();
        if (options.progress && (done >= 1 || now_ >= next_report)) {
            if (!call_outside([&] { options.progress(names, done); })) return false;
            next_report = now_ + between_reports;
        }
        return done >= 1;
    };
    if (!rails_.survey().flood(links)) return 0;
    for (double before = -1; rails_.survey().flooded() > before;) {
        before = rails_.survey().flooded();
        if (progress_until(over, now() + patience)) break;
    }
    return rails_.survey().end_flood();
}

/// What two links bring together that bring `alone` each; 0 if one of them died or fell silent.
double Engine::flood_pair(const std::array<std::uint32_t, 2>& links, const std::string& names,
                          const std::array<double, 2>& alone, const SharingOptions& options) {
    std::array<double, floods> rates{};
    for (auto& rate : rates) {
        rate = flood(links, names, options);
        // Once seen to share nothing, they do share nothing: whatever else goes on takes from them.
        if (rate == 0 || !model::share_bottleneck(alone[0], alone[1], rate)) return rate;
    }
    return median(rates);
}

SharingAssessment Engine::assess_sharing(Peer to, std::string_view selected, const SharingOptions& options) {
    const Lock lock(*this);
    const auto begun = now();
    SharingAssessment result;
    const auto links = links_to_assess(to, selected);
    if (links.size() < 2) return result;
    std::vector<std::string> names;
    names.reserve(links.size());
    for (const auto link : links) names.push_back(rail_set_[rails_.survey().rail_of(link)].info.name);

    std::vector<double> alone;
    for (std::size_t i = 0; i < links.size(); ++i) {
        std::array<double, floods> rates{};
        for (auto& rate : rates) rate = flood({&links[i], 1}, names[i], options);
        alone.push_back(median(rates));
    }
    std::vector<model::PairCapacity> pairs;
    for (std::uint32_t i = 0; i < links.size(); ++i) {
        for (std::uint32_t j = i + 1; j < links.size(); ++j) {
            if (alone[i] == 0 || alone[j] == 0) continue;
            const auto bps =
                flood_pair({links[i], links[j]}, names[i] + " + " + names[j], {alone[i], alone[j]}, options);
            if (bps > 0) pairs.push_back({i, j, bps});
        }
    }
    const auto groups = model::find_bottlenecks(alone, pairs);
    rails_.groups().note(known_peer(to), links, alone, groups);

    for (const auto& [a, b, together] : pairs) {
        const auto [rail, added] = alone[a] >= alone[b] ? std::pair(a, b) : std::pair(b, a);
        result.pairs.push_back(
            {.rail = names[rail],
             .added = names[added],
             .rail_bps = alone[rail],
             .added_bps = alone[added],
             .together_bps = together,
             .shared = model::share_bottleneck(alone[rail], alone[added], together),
             .text = model::describe_pair(names[rail], names[added], said_for, alone[rail], alone[added], together)});
    }
    for (const auto& group : groups) {
        auto& named = result.groups.emplace_back();
        for (const auto rail : group.rails) named.rails.push_back(names[rail]);
        named.bits_per_second = group.bps;
    }
    result.took = std::chrono::nanoseconds(now() - begun);
    return result;
}

}  // namespace railmux::messaging

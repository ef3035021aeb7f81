#include "rails/groups.hpp"

#include <algorithm>
#include <functional>
#include <utility>

namespace railmux::rails {

namespace {
// A further rail is not worth using if it adds less to a group than two floods of the same rails may differ by.
constexpr double filled = 0.9;
// Rails that bring less than this part of what was measured, for so long, are not what they were. A process that is away
// for a moment makes them look so, too.
constexpr double outdated = 0.5;
constexpr base::Nanoseconds outdated_after = 100 * base::millisecond;

double bps_of(const sched::Pace& pace) noexcept {
    constexpr double bits = 8e9 * sched::ticks_per_ns;
    return pace.per_byte() > 0 ? bits / static_cast<double>(pace.per_byte()) : 0;
}

bool has(const LinkGroup& group, std::uint32_t link) noexcept {
    return std::ranges::find(group.members, link, &LinkGroup::Member::link) != group.members.end();
}

/// Marks the candidates of those that are left out while the group is, or not.
void mark_spare(Conversation& talk, const LinkGroup& group, bool spare) noexcept {
    for (std::size_t i = group.used; i < group.members.size(); ++i) {
        if (group.members[i].by_processors) {
            talk.processors.spare(spare);
            continue;
        }
        const auto place = std::ranges::find(talk.links, group.members[i].link) - talk.links.begin();
        if (place < std::ssize(talk.links)) talk.candidates[static_cast<std::size_t>(place)].spare = spare;
    }
}
}  // namespace

void Groups::note(std::uint32_t peer, std::span<const std::uint32_t> links, std::span<const double> alone_bps,
                  std::span<const model::Bottleneck> groups) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    for (const auto& known : talk->groups) mark_spare(*talk, known, false);
    talk->groups.clear();
    const auto live = [&](std::uint32_t link) { return std::ranges::find(talk->links, link) != talk->links.end(); };
    const auto rail_of = [&](std::uint32_t link) { return links_.at(link).rail; };
    for (std::size_t i = 0; i < links.size(); ++i) {
        if (alone_bps[i] > 0 && live(links[i]))
            ledger_.measured(rail_of(links[i]), sched::to_ticks(8e9 / alone_bps[i]));
    }
    const auto by_processors = [&](std::size_t place) { return traits(rail_of(links[place])).by_processors; };
    std::size_t moved = links.size();  // the fastest of those
    for (std::size_t i = 0; i < links.size(); ++i) {
        if (by_processors(i) && live(links[i]) && (moved == links.size() || alone_bps[i] > alone_bps[moved])) moved = i;
    }
    for (const auto& found : groups) {
        LinkGroup group{.bps = found.bps};
        for (const auto place : found.rails) {
            const auto link = links[place];
            if (by_processors(place) && place != moved) continue;
            const bool taken = std::ranges::any_of(talk->groups, [&](const LinkGroup& g) { return has(g, link); });
            if (!taken && live(link))
                group.members.push_back({link, rail_of(link), alone_bps[place], by_processors(place)});
        }
        if (group.members.size() < 2) continue;
        std::ranges::stable_sort(group.members, std::ranges::greater{}, &LinkGroup::Member::bps);
        for (double sum = 0; group.used < group.members.size() && sum < filled * group.bps; ++group.used) {
            sum += group.members[group.used].bps;
        }
        mark_spare(*talk, group, true);
        log_.debug("{} of {} rails to {} fill the bottleneck of {} that they share, beginning with rail {}", group.used,
                   group.members.size(), peers_.name(peer), model::readable_bps(group.bps),
                   rails_[group.members.front().rail].traits().name);
        talk->groups.push_back(std::move(group));
    }
    eager_.choose(*talk);
}

void Groups::forget(Conversation& talk, const Link& with) noexcept {
    std::erase_if(talk.groups, [&](const LinkGroup& group) {
        if (!has(group, with.slot)) return false;
        mark_spare(talk, group, false);
        return true;
    });
}

void Groups::review(Conversation& talk, base::Nanoseconds now) {
    const auto dissolved = std::erase_if(talk.groups, [&](LinkGroup& group) {
        double bps = 0;
        for (std::size_t i = 0; i < group.used; ++i) bps += bps_of(ledger_.pace(group.members[i].rail));
        if (bps >= outdated * group.bps) {
            group.slow = 0;
            return false;
        }
        if (group.slow == 0) group.slow = now;
        if (now - group.slow < outdated_after) return false;
        log_.debug("rail {} and others bring {} of the {} that were measured: all that share this count again",
                   rails_[group.members.front().rail].traits().name, model::readable_bps(bps),
                   model::readable_bps(group.bps));
        mark_spare(talk, group, false);
        return true;
    });
    if (dissolved > 0) eager_.choose(talk);
}

void Groups::describe(LinkModel& model, const Link& link) const {
    model.while_shared = model.model;
    for (const auto& group : peers_[link.peer].talk->groups) {
        if (!has(group, link.slot)) continue;
        double sum = 0;
        for (const auto& member : group.members) {
            model.group.rails.push_back(rails_[member.rail].traits().name);
            sum += member.bps;
        }
        model.group.bits_per_second = group.bps;
        model.while_shared = model::while_shared(model.model, sum, group.bps);
    }
    if (!model.group.rails.empty() || !traits(link.rail).by_processors) return;
    auto& rails = model.group.rails;
    for (const auto& candidate : peers_[link.peer].talk->candidates) {
        if (candidate.by_processors) rails.push_back(traits(candidate.rail).name);
    }
    if (rails.size() < 2) rails.clear();
}

std::string Groups::why_spare(const Link& link) const {
    const auto& talk = *peers_[link.peer].talk;
    const auto& own = talk.candidates[link.place];
    if (!own.spare) return {};
    for (const auto& other : talk.candidates) {
        if (own.by_processors && other.by_processors && !other.spare)
            return "moved by the same processors as " + traits(other.rail).name;
    }
    const auto stands_for_it = [&](const LinkGroup& group) {
        const auto spare = std::span(group.members).subspan(group.used);
        return has(group, link.slot) ||
               (own.by_processors && std::ranges::any_of(spare, &LinkGroup::Member::by_processors));
    };
    const auto group = std::ranges::find_if(talk.groups, stands_for_it);
    return group == talk.groups.end() ? std::string()
                                      : "in one bottleneck with " + traits(group->members.front().rail).name;
}

}  // namespace railmux::rails

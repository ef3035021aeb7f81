#include "rails/eager_switch.hpp"

#include <algorithm>
#include <numeric>

#include "base/copying.hpp"
#include "base/fastest.hpp"
#include "rails/assessor.hpp"

namespace railmux::rails {

EagerSwitch::EagerSwitch(Options options, RailSet& rails, LinkTable& links)
    : options_(options), rails_(rails), links_(links) {
    if (options_.by_model && options_.measure) copying_.ns = base::measure_copying();
    measure_new_rails();
}

/// Rails that copy what is not registered, because their devices reach nothing else.
void EagerSwitch::measure_new_rails() {
    constexpr int rounds = 3;
    for (auto rail = region_ns_.size(); rail < rails_.size(); ++rail) {
        auto& ns = region_ns_.emplace_back(0);
        if (!options_.by_model || !options_.measure || !rails_[rail].traits().copies_puts) continue;
        auto& over = *rails_[rail].rail;
        std::vector<std::byte> memory(options_.most);
        ns = base::fastest_ns(rounds, [&] {
            if (auto region = over.add_region(memory, transports::Access::remote_write))
                over.drop_region(region.value());
        });
    }
}

/// A rendezvous opens the receiver's memory over all rails.
Nanos EagerSwitch::opening() const noexcept {
    return Nanos(std::accumulate(region_ns_.begin(), region_ns_.end(), 0.0));
}

std::uint64_t EagerSwitch::max_over(const Link& link) const noexcept {
    if (!options_.by_model || link.assessed == nullptr || link.assessed->source == ModelSource::guess)
        return options_.most;
    return model::eager_max(link.assessed->model, costs_over(link), {.most = options_.most});
}

std::uint64_t EagerSwitch::unasked_over(const Link& link, double part) const noexcept {
    if (!options_.by_model || link.assessed == nullptr) return 0;
    auto costs = costs_over(link);
    costs.part = part;
    return model::unasked_max(link.assessed->model, costs, {.most = largest_inlined, .at_once = passed_at_once});
}

/// What one link carries of a message that goes over all that count, if each has as much as its rate is of all. Those that
/// nobody has measured are not counted on, unless it is one of them.
double EagerSwitch::part_of(std::uint32_t place, const Conversation& talk) const noexcept {
    const auto takes = [&](std::size_t i) {
        return static_cast<double>(std::max<sched::Ticks>(talk.costs[i].per_byte, 1));
    };
    const auto known = [&](std::size_t i) {
        const auto& assessed = links_.at(talk.links[i]).assessed;
        return assessed != nullptr && assessed->source != ModelSource::guess;
    };
    const bool guessed = !known(place);
    double all = 0;
    for (std::size_t i = 0; i < talk.links.size(); ++i) {
        if (i == place || ((guessed || known(i)) && !talk.candidates[i].spare)) all += takes(place) / takes(i);
    }
    return 1 / all;
}

model::EagerCosts EagerSwitch::costs_over(const Link& link) const noexcept {
    return {.copying = copying_, .by_processors = rails_[link.rail].traits().by_processors, .opening = opening()};
}

void EagerSwitch::choose(Conversation& talk) noexcept {
    if (talk.links.empty()) return;
    const auto later = [&](std::uint32_t place) {
        const auto& cost = talk.costs[place];
        return std::pair(talk.candidates[place].spare, cost.latency + sched::times(options_.most, cost.slope));
    };
    std::uint32_t first = 0;
    for (std::uint32_t place = 1; place < talk.links.size(); ++place) {
        if (later(place) < later(first)) first = place;
    }
    const Link& link = links_.at(talk.links[first]);
    talk.eager_max = static_cast<std::uint32_t>(max_over(link));
    talk.unasked_max = static_cast<std::uint32_t>(unasked_over(link, part_of(first, talk)));
    talk.eager_if_unregistered = rails_[link.rail].traits().copies_puts;
}

}  // namespace railmux::rails

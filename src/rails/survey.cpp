#include "rails/survey.hpp"

#include <algorithm>
#include <utility>

namespace railmux::rails {

namespace {

// A size at which the bandwidth shows on every network, and which all of them take in one frame.
constexpr std::uint64_t line_through = 16 * 1024;

/// As traffic has corrected it.
LogGP corrected(LogGP model, const sched::Pace& pace, base::Nanoseconds now) {
    for (auto& range : model.ranges) {
        if (pace.per_byte() > 0) range.G.ns = sched::to_ns(pace.per_byte());
        if (!pace.proven().any(now)) continue;
        if (pace.per_byte() == 0) range.G.ns = std::min(range.G.ns, sched::to_ns(pace.proven().per_byte()));
        range.g = std::min(range.g, Nanos(sched::to_ns(pace.proven().gap(sched::to_ticks(range.G.ns)))));
    }
    return model;
}

}  // namespace

sched::Cost Survey::cost_by(const LogGP& model) {
    // One line for all sizes: through the shortest message and a large frame.
    const auto small = model.predict(1);
    const auto large = model.predict(line_through);
    const auto slope = std::max(0.0, (large.delivery - small.delivery).count()) / (line_through - 1);
    const auto per_byte = std::max(0.0, (large.rail - small.rail).count()) / (line_through - 1);
    return {.latency = sched::to_ticks(small.delivery.count()),
            .slope = sched::to_ticks(slope),
            .gap = sched::to_ticks(small.rail.count()),
            .per_byte = std::max<sched::Ticks>(1, sched::to_ticks(per_byte))};
}

LinkModel Survey::model_of(const Link& link, base::Nanoseconds now) const {
    const auto& assessed = *link.assessed;
    const auto& pace = known_.ledger.pace(link.rail);
    LinkModel model{.peer = Peer::from_index(link.peer),
                    .rail = rails_[link.rail].traits().name,
                    .link = link.label,
                    .source = assessed.source,
                    .model = corrected(assessed.model, pace, now)};
    const auto said = assessed.model.range(line_through).G.ns;
    if (pace.per_byte() > 0 && said > 0) model.drift = sched::to_ns(pace.per_byte()) / said;
    model.eager_max = known_.eager.max_over(link);
    known_.groups.describe(model, link);
    model.spare = known_.groups.why_spare(link);
    return model;
}

std::vector<LinkModel> Survey::models(std::uint32_t peer, base::Nanoseconds now) const {
    std::vector<LinkModel> all;
    const auto* talk = peers_[peer].talk.get();
    for (std::size_t i = 0; talk != nullptr && i < talk->links.size(); ++i) {
        all.push_back(model_of(links_.at(talk->links[i]), now));
    }
    return all;
}

void Survey::keep(const Link& link, base::Nanoseconds now) const {
    auto& ended = link.traffic->ended;
    std::erase_if(ended, [&](const Traffic::Ended& other) { return other.remote_rail == link.remote_rail; });
    ended.push_back({link.remote_rail, model_of(link, now)});
    ended.back().model.spare.clear();  // it gets nothing because it is over
}

std::vector<LinkModel> Survey::ended_models(std::uint32_t peer) const {
    std::vector<LinkModel> all;
    const auto* traffic = peers_[peer].traffic.get();
    for (std::size_t rail = 0; traffic != nullptr && rail < rails_.size(); ++rail) {
        for (const auto& ended : traffic[rail].ended) all.push_back(ended.model);
    }
    return all;
}

std::vector<std::uint32_t> Survey::links(std::uint32_t peer) const {
    const auto* talk = peers_[peer].talk.get();
    return talk == nullptr ? std::vector<std::uint32_t>{} : talk->links;
}

void Survey::measure(std::uint32_t slot, const AssessOptions& options) { assessor_.measure(links_.at(slot), options); }

void Survey::stop_measuring(std::uint32_t slot) { assessor_.abandon(links_.at(slot)); }

double Survey::measured(std::uint32_t slot) const {
    const Link& link = links_.at(slot);
    if (link.state != LinkState::live || link.assessed == nullptr || link.assessed->probe == nullptr) return 1;
    return std::min(link.assessed->probe->prober.progress(), 0.999);
}

std::optional<LinkAssessment> Survey::take_assessment(std::uint32_t slot, base::Nanoseconds now) {
    const Link& link = links_.at(slot);
    if (link.state != LinkState::live || link.assessed == nullptr) return std::nullopt;
    auto result = assessor_.take_result(link);
    if (result) result->link = model_of(link, now);
    return result;
}

bool Survey::flood(std::span<const std::uint32_t> links) {
    const auto live = [&](std::uint32_t link) { return links_.at(link).state == LinkState::live; };
    if (!std::ranges::all_of(links, live)) return false;
    flooder_.start(links);
    return true;
}

}  // namespace railmux::rails

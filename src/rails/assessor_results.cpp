// Assessor, what is known: by earlier runs, by links of the same kind, by a probe that ended, by the other side.
#include <algorithm>

#include "base/bytes.hpp"
#include "model/prior.hpp"
#include "rails/assessor.hpp"

namespace railmux::rails {

namespace {

std::string_view to_string(model::Verdict verdict) noexcept {
    switch (verdict) {
        case model::Verdict::running: return "unfinished";
        case model::Verdict::measured: return "measured";
        case model::Verdict::verified: return "verified";
        case model::Verdict::disagrees: return "disagrees";
        case model::Verdict::too_little: return "saw too little";
    }
    return "?";
}

}  // namespace

// --- Before a link is measured ---------------------------------------------------------------------------------------

/// Begins the first probe of a link that has come up, if there is one. What an earlier run measured is read from a file:
/// neither the link's first frames nor an answer that is being timed should wait for that.
bool Assessor::begin_first_probe() {
    if (awaiting_ > 0) return false;
    const auto found = std::ranges::find_if(fresh_, [&](auto slot) { return links_.at(slot).outbox.empty(); });
    if (found == fresh_.end()) return false;
    Link& link = links_.at(*found);
    const auto working = spending(link.rail);
    auto first = first_probe(link);
    begin(link, std::move(first), false);
    return true;
}

/// Verifies what is known from an earlier run, or of a link of the same kind; else measures quickly. What is known counts
/// until it has been verified, too: it is the best guess there is.
model::ProbeOptions Assessor::first_probe(Link& link) {
    auto kind = model::ProbeKind::quick;
    bool of_another = false;
    if (auto stored = stored_.find(link)) {
        adopt(link, std::move(*stored), ModelSource::stored);
        kind = model::ProbeKind::verify;
    } else if (const auto* shared = options_.share ? known_kind(link) : nullptr; shared != nullptr) {
        adopt(link, *shared, ModelSource::shared);
        kind = model::ProbeKind::verify;
        of_another = true;
    }
    return {.kind = kind, .expected = link.assessed->model, .of_another = of_another};
}

const LogGP* Assessor::known_kind(const Link& link) const noexcept {
    for (const auto& kind : kinds_) {
        if (kind.rail == link.rail && kind.remote_rail == link.remote_rail) return &kind.model;
    }
    return nullptr;
}

void Assessor::learn_kind(const Link& link) {
    std::erase_if(kinds_, [&](const Kind& k) { return k.rail == link.rail && k.remote_rail == link.remote_rail; });
    kinds_.push_back({link.rail, link.remote_rail, link.assessed->model});
}

// --- What a probe brought --------------------------------------------------------------------------------------------

void Assessor::finish(Link& link) {
    const auto working = spending(link.rail);
    auto& assessed = *link.assessed;
    auto& probe = *assessed.probe;
    const auto& outcome = probe.prober.outcome();
    if (probe.full) {
        const auto& spent = spent_[link.rail];
        LinkAssessment result{.missing = outcome.missing,
                              .interrupted = outcome.interrupted,
                              .spent = {.messages = spent.messages - probe.before.messages,
                                        .bytes = spent.bytes - probe.before.bytes,
                                        .cpu = spent.cpu - probe.before.cpu},
                              .took = std::chrono::nanoseconds(clock_() - probe.since)};
        for (const auto& s : probe.prober.samples()) {
            result.points.push_back(
                {.n = s.train.n,
                 .bytes = s.train.bytes,
                 .delay = Nanos(s.train.n > 1 ? static_cast<double>(s.idle) / (s.train.n - 1) : 0.0),
                 .prtt = Nanos(s.prtt()),
                 .held = Nanos(static_cast<double>(s.mirror_held)),
                 .send_cpu = Nanos(static_cast<double>(s.send_cpu)),
                 .receive_cpu = Nanos(static_cast<double>(s.receive_cpu)),
                 .mirror_receive_cpu = Nanos(static_cast<double>(s.mirror_receive_cpu)),
                 .unseen = Nanos(static_cast<double>(s.unseen())),
                 .late = s.train.late_look > 0,
                 .interrupted = s.interrupted()});
        }
        results_.push_back({link.id, link.rail, std::move(result)});
    }
    const auto verdict = outcome.verdict;
    log_.debug(
        "rail {}: link {}: probe {} after {} us: {} messages, {} bytes, {} lost, {} of {} samples interrupted\n{}",
        rails_[link.rail].traits().name, link.label, to_string(verdict), outcome.took / 1000, outcome.cost.messages,
        outcome.cost.bytes, outcome.lost, outcome.assessment.interrupted, probe.prober.samples().size(),
        to_text(outcome.assessment.model));
    auto model = outcome.assessment.model;
    const bool full = probe.full;
    const bool disturbed = outcome.disturbed;
    const auto source = full ? ModelSource::measured : ModelSource::probed;
    forget_probe(link);
    if (full) end_puts(link);
    switch (verdict) {
        case model::Verdict::measured: measured(link, std::move(model), source); break;
        case model::Verdict::verified: verified(link, std::move(model)); break;
        case model::Verdict::disagrees: disagreed(link); break;
        case model::Verdict::running:
        case model::Verdict::too_little: break;  // traffic will correct what was assumed
    }
    auto& repeated = link.assessed->repeated;  // what was found all the same is verified then
    if (disturbed && !stopped_ && repeats_.add(link.slot, repeated, host_.busy())) ++repeated;
}

void Assessor::measured(Link& link, LogGP model, ModelSource source) {
    adopt(link, std::move(model), source);
    learn_kind(link);
    stored_.keep(link, link.assessed->model);
    tell_peer(link);
}

void Assessor::verified(Link& link, LogGP model) {
    const bool stored = link.assessed->source == ModelSource::stored;
    adopt(link, std::move(model), ModelSource::verified);
    if (stored) {
        stored_.confirm(link);
        learn_kind(link);
    } else {
        stored_.keep_shared(link, link.assessed->model);
    }
    tell_peer(link);
}

void Assessor::disagreed(Link& link) {
    const auto& rail = rails_[link.rail];
    if (link.assessed->source == ModelSource::stored) {
        log_.info("rail {}: link {} is no longer what an earlier run measured; it is measured anew", rail.traits().name,
                  link.label);
    }
    adopt(link, model::prior(rail.transport, rail.speed_bps()), ModelSource::guess);
    begin(link, {.kind = model::ProbeKind::quick, .expected = link.assessed->model}, false);
}

std::optional<LinkAssessment> Assessor::take_result(const Link& link) {
    const auto found =
        std::ranges::find_if(results_, [&](const Result& r) { return r.rail == link.rail && r.link == link.id; });
    if (found == results_.end()) return std::nullopt;
    auto result = std::move(found->assessment);
    results_.erase(found);
    return result;
}

void Assessor::adopt(Link& link, LogGP model, ModelSource source) {
    auto& assessed = *link.assessed;
    assessed.model = std::move(model);
    assessed.source = source;
    host_.model_changed(link);
}

void Assessor::tell_peer(Link& link) {
    base::Writer body;
    body.write(rails_[link.rail].identity);
    const auto text = to_text(link.assessed->model);
    body.append(std::as_bytes(std::span(text)));
    const auto bytes = std::move(body).take();
    if (bytes.size() > largest_probe(link.rail)) return;
    post(link, probe_frame(pool_, FrameType::model, bytes));
}

bool Assessor::on_model(Link& link, std::span<const std::byte> body) {
    if (link.assessed == nullptr) return true;
    const auto working = spending(link.rail);
    base::Reader in(body);
    const auto identity = in.read<std::uint64_t>();
    const auto text = in.take(in.left());
    if (!in.ok()) return false;
    try {
        adopt(link, loggp_from_text({reinterpret_cast<const char*>(text.data()), text.size()}), ModelSource::told);
    } catch (const Error&) {
        return false;
    }
    stored_.keep_told(link, identity, link.assessed->model);
    return true;
}

}  // namespace railmux::rails

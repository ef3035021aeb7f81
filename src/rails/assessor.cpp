#include "rails/assessor.hpp"

#include <algorithm>
#include <cstring>

#include "model/prior.hpp"

namespace railmux::rails {

using model::ProbeReply;
using model::ProbeRequest;

namespace {

// A reply that has not come after so long never will, or says nothing about the network any more.
constexpr base::Nanoseconds reply_limit = base::second;
// After a probe message, or when a link has just been accepted, more are expected: from then on times are taken.
constexpr base::Nanoseconds mirror_alert = 5 * base::millisecond;
// Bytes waiting on a link beyond which a probe is not answered: four of the largest answers.
constexpr std::uint64_t most_queued = 4 * FramePool::largest;

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

Assessor::Assessor(Options options, RailSet& rails, LinkTable& links, FramePool& pool, AssessorHost& host,
                   base::Logger& log)
    : options_(options),
      rails_(rails),
      links_(links),
      pool_(pool),
      host_(host),
      log_(log),
      late_(rails.size(), 0),
      spent_(rails.size()) {}

Assessor::~Assessor() = default;

// --- Links come and go -----------------------------------------------------------------------------------------------

void Assessor::link_up(Link& link, base::Nanoseconds now) {
    const auto& rail = rails_[link.rail];
    link.assessed = std::make_unique<Assessed>(model::prior(rail.transport, rail.traits().speed_bps));
    host_.model_changed(link);
    if (!options_.probe || stopped_ || rail.transport == "self") return;
    if (!link.initiated) {
        timing_until_ = std::max(timing_until_, now + mirror_alert);
        return;
    }
    model::ProbeOptions probe{.kind = model::ProbeKind::quick, .expected = link.assessed->model};
    if (const auto* kind = options_.share ? known_kind(link) : nullptr; kind != nullptr) {
        probe.kind = model::ProbeKind::verify;
        probe.expected = *kind;
    }
    begin(link, std::move(probe), false);
}

void Assessor::link_down(Link& link) {
    if (link.assessed == nullptr) return;
    forget_probe(link);
    std::erase_if(results_, [&](const Result& r) { return r.rail == link.rail && r.link == link.id; });
    link.assessed.reset();
}

const LogGP* Assessor::known_kind(const Link& link) const noexcept {
    for (const auto& kind : kinds_) {
        if (kind.rail == link.rail && kind.remote_rail == link.remote_rail) return &kind.model;
    }
    return nullptr;
}

std::uint64_t Assessor::largest_probe(std::uint32_t rail) const noexcept {
    constexpr std::uint64_t headers = FrameHeader::size + std::max(ProbeRequest::size, ProbeReply::size);
    return std::min<std::uint64_t>(rails_[rail].traits().max_frame, FramePool::largest) - headers;
}

void Assessor::begin(Link& link, model::ProbeOptions options, bool full) {
    forget_probe(link);
    options.max_bytes = std::min(options.max_bytes, largest_probe(link.rail));
    link.assessed->probe = std::make_unique<Probe>(std::move(options));
    link.assessed->probe->full = full;
    probed_.push_back(link.slot);
}

void Assessor::measure(Link& link, const AssessOptions& options) {
    if (link.assessed == nullptr) return;
    model::ProbeOptions probe{.kind = model::ProbeKind::full, .expected = link.assessed->model};
    probe.n = std::clamp(options.n, 2U, std::uint32_t{ProbeRequest::max_n});
    probe.grid = std::clamp(options.sizes, 2U, 1024U);
    probe.rounds = std::max(options.rounds, 1U);
    probe.max_bytes = options.max_bytes == 0 ? largest_probe(link.rail) : options.max_bytes;
    begin(link, std::move(probe), true);
}

void Assessor::abandon(Link& link) {
    if (link.assessed != nullptr) forget_probe(link);
}

void Assessor::stop() {
    stopped_ = true;
    while (!probed_.empty()) forget_probe(links_.at(probed_.back()));
}

void Assessor::stop(std::uint32_t peer) {
    const auto probed = probed_;
    for (const auto slot : probed) {
        if (links_.at(slot).peer == peer) forget_probe(links_.at(slot));
    }
}

void Assessor::end_train(Link& link, Probe& probe) {
    if (!std::exchange(probe.awaiting, false)) return;
    --awaiting_;
    if (probe.train.late_look == 0) return;
    --late_links_;
    late_[link.rail] = 0;
}

void Assessor::forget_probe(Link& link) {
    if (link.assessed->probe == nullptr) return;
    end_train(link, *link.assessed->probe);
    link.assessed->probe.reset();
    std::erase(probed_, link.slot);
}

// --- Measuring -------------------------------------------------------------------------------------------------------

bool Assessor::step(base::Nanoseconds now) {
    bool any = false;
    next_step_ = never;
    for (std::size_t i = 0; i < probed_.size(); ++i) any = step(links_.at(probed_[i]), now) || any;
    return any;
}

bool Assessor::step(Link& link, base::Nanoseconds now) {
    auto& probe = *link.assessed->probe;
    if (probe.awaiting) {
        const auto sent = probe.next;
        if (probe.next < probe.train.n) {
            send_due(link, probe);
        } else if (now - probe.last_sent >= reply_limit) {
            end_train(link, probe);
            probe.prober.lost(now);
            return true;
        }
        const auto wait = probe.next < probe.train.n ? probe.train.delay : reply_limit;
        next_step_ = std::min(next_step_, probe.last_sent + wait);
        return probe.next > sent;
    }
    if (probe.prober.finished()) {
        finish(link);
        return true;
    }
    if (awaiting_ > 0) return false;         // two at a time would measure each other's system calls
    if (!link.outbox.empty()) return false;  // the application first
    const bool sending = link.unacked_bytes > 0;
    const auto action = probe.prober.next(now, sending ? model::Application::sending : model::Application::idle);
    if (action.kind == model::Action::Kind::wait) next_step_ = std::min(next_step_, action.until);
    if (action.kind == model::Action::Kind::finished) next_step_ = now;
    if (action.kind != model::Action::Kind::send) return false;
    timed_rail_ = link.rail;
    start_train(probe, action.train, now);
    send_due(link, probe);
    return true;
}

void Assessor::start_train(Probe& probe, const model::Train& train, base::Nanoseconds now) {
    probe.awaiting = true;
    ++awaiting_;
    probe.train = train;
    probe.next = 0;
    probe.sample = {.train = train};
    probe.begun = probe.last_sent = now;
}

/// The messages of the train that are due by now: all of them, or one after each delay.
void Assessor::send_due(Link& link, Probe& probe) {
    while (probe.next < probe.train.n) {
        const auto now = options_.clock();
        if (probe.next > 0 && now - probe.last_sent < probe.train.delay) return;
        if (probe.next == 0) {
            probe.begun = now;
        } else if (probe.train.delay > 0) {
            probe.sample.idle += now - probe.last_sent;
        }
        send_message(link, probe);
        probe.last_sent = options_.clock();
        probe.sample.send_cpu += probe.last_sent - now;
    }
    if (probe.train.late_look > 0) {
        late_[link.rail] = probe.last_sent + probe.train.late_look;
        ++late_links_;
    }
}

void Assessor::send_message(Link& link, Probe& probe) {
    const auto head = model::encode(ProbeRequest{.train = probe.train.id,
                                                 .n = static_cast<std::uint16_t>(probe.train.n),
                                                 .index = static_cast<std::uint16_t>(probe.next),
                                                 .bytes = probe.train.bytes});
    ++probe.next;
    host_.post_now(link, probe_frame(pool_, FrameType::probe, head, probe.train.bytes));
}

Frame* probe_frame(FramePool& pool, FrameType type, std::span<const std::byte> head, std::uint64_t payload) {
    const auto bytes = FrameHeader::size + head.size() + static_cast<std::size_t>(payload);
    Frame* made = pool.take(bytes);
    made->type = type;
    made->bytes = static_cast<std::uint32_t>(bytes);
    made->acked = true;  // nobody acknowledges it: it is released when it is done
    write_header(made->data(), {.type = type});
    std::copy(head.begin(), head.end(), made->data() + FrameHeader::size);
    // What was in this memory before is nobody else's business.
    std::memset(made->data() + FrameHeader::size + head.size(), 0, static_cast<std::size_t>(payload));
    return made;
}

void Assessor::on_reply(Link& link, const ProbeReply& reply, const Look& look) {
    auto* probe = link.assessed == nullptr ? nullptr : link.assessed->probe.get();
    if (probe == nullptr || !probe->awaiting || probe->next < probe->train.n || reply.train != probe->train.id) {
        return;  // of a train that was given up
    }
    auto& sample = probe->sample;
    sample.round_trip = look.at - probe->begun;
    sample.receive_cpu = look.receive_cpu;
    // Nobody had to look before the train had left.
    sample.blind = std::min(look.blind, std::max<base::Nanoseconds>(look.begun - probe->last_sent, 0));
    sample.mirror_held = reply.held;
    sample.mirror_blind = reply.blind;
    sample.mirror_receive_cpu = reply.receive_cpu;
    end_train(link, *probe);
    probe->prober.answered(sample, look.at);
}

void Assessor::finish(Link& link) {
    auto& assessed = *link.assessed;
    auto& probe = *assessed.probe;
    const auto& outcome = probe.prober.outcome();
    auto& spent = spent_[link.rail];
    spent.messages += outcome.cost.messages;
    spent.bytes += outcome.cost.bytes;
    spent.cpu += std::chrono::nanoseconds(outcome.cost.cpu);
    if (probe.full) {
        LinkAssessment result{
            .spent = {outcome.cost.messages, outcome.cost.bytes, std::chrono::nanoseconds(outcome.cost.cpu)},
            .took = std::chrono::nanoseconds(outcome.took)};
        for (const auto& s : probe.prober.samples()) {
            result.points.push_back(
                {.n = s.train.n,
                 .bytes = s.train.bytes,
                 .delay = Nanos(s.train.n > 1 ? static_cast<double>(s.idle) / (s.train.n - 1) : 0.0),
                 .prtt = Nanos(s.prtt()),
                 .held = Nanos(static_cast<double>(s.mirror_held)),
                 .send_cpu = Nanos(static_cast<double>(s.send_cpu)),
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
    const auto expected = assessed.model;
    forget_probe(link);
    switch (verdict) {
        case model::Verdict::measured:
            adopt(link, std::move(model), full ? ModelSource::measured : ModelSource::probed);
            std::erase_if(kinds_,
                          [&](const Kind& k) { return k.rail == link.rail && k.remote_rail == link.remote_rail; });
            kinds_.push_back({link.rail, link.remote_rail, assessed.model});
            tell_peer(link);
            break;
        case model::Verdict::verified:
            adopt(link, std::move(model), ModelSource::verified);
            tell_peer(link);
            break;
        case model::Verdict::disagrees:
            begin(link, {.kind = model::ProbeKind::quick, .expected = expected}, false);
            break;
        case model::Verdict::running:
        case model::Verdict::too_little: break;  // traffic will correct the guess
    }
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
    const auto text = to_text(link.assessed->model);
    if (text.size() > largest_probe(link.rail)) return;
    host_.post_now(link, probe_frame(pool_, FrameType::model, std::as_bytes(std::span(text)), 0));
}

// --- Being measured --------------------------------------------------------------------------------------------------

bool Assessor::on_probe(Link& link, std::span<const std::byte> body, const Look& look) {
    const auto request = model::parse_request(body);
    if (!request || request->bytes > largest_probe(link.rail) || link.assessed == nullptr) return false;
    timing_until_ = look.at + mirror_alert;
    if (awaiting_ == 0) timed_rail_ = link.rail;
    auto& mirror = link.assessed->mirror;
    if (!mirror.arrived(*request, {look.at, look.blind, look.receive_cpu})) return true;
    // Who asks without taking the answers gets no more of them: they would pile up here.
    if (link.queued_bytes > most_queued) return true;
    Frame* answer =
        probe_frame(pool_, FrameType::probe_reply, std::array<std::byte, ProbeReply::size>{}, request->bytes);
    const auto head = model::encode(mirror.reply(options_.clock()));  // as late as can be
    std::copy(head.begin(), head.end(), answer->data() + FrameHeader::size);
    host_.post_now(link, answer);
    return true;
}

bool Assessor::on_model(Link& link, std::span<const std::byte> body) {
    if (link.assessed == nullptr) return true;
    try {
        adopt(link, loggp_from_text({reinterpret_cast<const char*>(body.data()), body.size()}), ModelSource::told);
    } catch (const Error&) {
        return false;
    }
    return true;
}

}  // namespace railmux::rails

#include "rails/tracer.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "base/host.hpp"
#include "sched/explain.hpp"

namespace railmux::rails {

namespace {

trace::Header header_of(const Tracer::Options& options, base::Nanoseconds now, const RailSet& rails,
                        const sched::Policy& policy) {
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    trace::Header header{.rank = options.rank == no_rank ? trace::no_rank : options.rank,
                         .pid = base::process_id(),
                         .started = now,
                         .wall = std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count(),
                         .host = base::host_name(),
                         .policy = std::string(policy.name())};
    for (std::size_t i = 0; i < rails.size(); ++i) {
        header.rails.push_back({rails[i].traits().name, rails[i].speed_bps()});
    }
    return header;
}

template <typename Integer>
std::uint32_t narrowed(Integer value) noexcept {
    constexpr auto most = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::clamp<Integer>(value, 0, most));
}

double us(sched::Ticks ticks) { return static_cast<double>(ticks) / (sched::ticks_per_ns * base::microsecond); }

}  // namespace

Tracer::Tracer(const Options& options, base::Nanoseconds now, const RailSet& rails, const sched::Policy& policy,
               LinkTable& links, const PeerTable& peers, base::Logger& log)
    : policy_(policy), links_(links), peers_(peers), rails_(rails), log_(log), to_explain_(options.explain) {
    if (options.file.empty()) return;
    const auto header = header_of(options, now, rails, policy);
    recorded_rails_ = header.rails.size();
    recorder_.emplace(trace::expand_path(options.file, header.rank, header.pid), header, log);
}

void Tracer::decided(const Link& link, std::span<Frame* const> frames, const Conversation& talk,
                     base::Nanoseconds now) {
    if (recorder_) record(link, frames, talk, now);
    for (const Frame* frame : frames) {
        if (!explains()) return;
        explain(link, *frame, talk, frame == frames.front() ? now : frame->sent);
    }
}

/// What a row shares is looked at once. Of its frames each finds those before it on the rail.
void Tracer::record(const Link& link, std::span<Frame* const> frames, const Conversation& talk, base::Nanoseconds now) {
    const auto count = std::min(talk.links.size(), trace::Recorder::most_options);
    if (link.place >= count) return;
    const auto came_later = [&](const sched::Candidate& candidate) { return candidate.rail >= recorded_rails_; };
    const auto newer = std::ranges::find_if(talk.candidates, came_later);
    if (newer != talk.candidates.end())
        return tell_unrecorded(newer->rail);  // the file has only those of the beginning
    auto recent = trace::no_option;
    for (std::size_t i = 0; i < count; ++i) {
        announce(links_.at(talk.links[i]), talk.candidates[i].cost);
        if (talk.candidates[i].recent) recent = static_cast<std::uint16_t>(i);
    }
    std::uint64_t before = 0;
    for (const Frame* frame : frames) {
        const auto bytes = frame->wire_bytes();
        const auto at = frame == frames.front() ? now : frame->sent;
        std::byte* to =
            recorder_->add(trace::DecisionRecord{.flags = frame->again ? trace::decision_flag::again : std::uint8_t{0},
                                                 .options = static_cast<std::uint16_t>(count),
                                                 .choice = static_cast<std::uint16_t>(link.place),
                                                 .type = static_cast<std::uint8_t>(frame->type),
                                                 .peer = link.peer,
                                                 .seq = frame->seq,
                                                 .time = static_cast<std::uint64_t>(at),
                                                 .message = frame->piece_count > 0 ? frame->token : 0,
                                                 .bytes = narrowed(bytes),
                                                 .recent = recent});
        for (std::size_t i = 0; i < count; ++i) {
            const auto& candidate = talk.candidates[i];
            const auto more = candidate.rail == link.rail ? before : 0;
            const auto predicted = policy_.delivery(candidate, bytes, at) + sched::times(more, candidate.cost.per_byte);
            const trace::OptionRecord option{.link = talk.links[i],
                                             .predicted_ns = narrowed(predicted / sched::ticks_per_ns),
                                             .backlog = narrowed(candidate.backlog + more),
                                             .claimed = narrowed(talk.claims[i])};
            std::memcpy(to + i * sizeof option, &option, sizeof option);
        }
        before += bytes;
    }
}

/// Once: what is missing in a trace looks like a peer that nothing was sent to.
void Tracer::tell_unrecorded(std::uint32_t rail) {
    if (std::exchange(told_unrecorded_, true)) return;
    log_.warning(
        "rail {} came after the trace began, which has no place for it: decisions about peers that it leads to are no "
        "longer recorded; start the process anew to trace them",
        rails_[rail].traits().name);
}

/// Says what is new about a link.
void Tracer::announce(const Link& link, const sched::Cost& cost) {
    if (link.slot >= announced_.size()) announced_.resize(link.slot + 1);
    auto& told = announced_[link.slot];
    const auto instance = peers_[link.peer].instance;
    const Announced news{link.peer, instance, static_cast<std::uint8_t>(link.rail), link.remote_rail, cost};
    if (told == news) [[likely]]
        return;
    told = news;
    if (link.peer >= instances_.size()) instances_.resize(link.peer + 1, 0);
    if (std::exchange(instances_[link.peer], instance) != instance) {
        recorder_->add_peer(link.peer, peers_.name(link.peer));
    }
    recorder_->add(trace::LinkRecord{.rail = news.rail,
                                     .remote_rail = news.remote_rail,
                                     .link = link.slot,
                                     .peer = link.peer,
                                     .latency = std::min(cost.latency, trace::costliest),
                                     .slope = std::min(cost.slope, trace::costliest),
                                     .gap = std::min(cost.gap, trace::costliest),
                                     .per_byte = std::min(cost.per_byte, trace::costliest)});
}

Tracer::Heard Tracer::said_by(const Link& by, const FrameHeader& header, const Conversation& talk,
                              base::Nanoseconds now) noexcept {
    const bool known = header.held < held_longest;
    const bool complete = header.type == FrameType::ack;
    const auto flags =
        (known ? trace::acknowledged_flag::held_known : 0) | (complete ? trace::acknowledged_flag::complete : 0);
    const auto way = talk.candidates[by.place].cost.latency / sched::ticks_per_ns;
    return {.ack = header.ack,
            .flags = static_cast<std::uint8_t>(flags),
            .at = now,
            .back = (known ? header.held : 0) + way};
}

/// Nothing of a session before: its numbers mean nothing in this one.
Tracer::Untaken& Tracer::untaken_of(std::uint32_t peer) noexcept {
    auto& untaken = untaken_[peer];
    const auto& known = peers_[peer];
    if (untaken.instance != known.instance || untaken.epoch != known.epoch) {
        untaken = {.instance = known.instance, .epoch = known.epoch};
    }
    return untaken;
}

void Tracer::heard(const Link& by, const FrameHeader& header, const Conversation& talk, base::Nanoseconds now) {
    if (!recorder_) return;
    if (by.peer >= untaken_.size()) untaken_.resize(by.peer + 1);
    auto& untaken = untaken_of(by.peer);
    if (!untaken.heard.empty() && !Session::precedes(talk.session.acknowledged(), untaken.heard.back().ack)) {
        untaken.heard.clear();
        untaken.next = 0;
    }
    const auto told = untaken.heard.empty() ? talk.session.acknowledged() : untaken.heard.back().ack;
    if (Session::precedes(told, header.ack)) untaken.heard.push_back(said_by(by, header, talk, now));
}

void Tracer::acknowledged(const Link& by, const FrameHeader& header, const Frame& frame, const Conversation& talk,
                          base::Nanoseconds now) noexcept {
    if (!recorder_) return;
    auto told = said_by(by, header, talk, now);
    if (by.peer < untaken_.size()) {
        auto& [instance, epoch, heard, next] = untaken_of(by.peer);
        while (next < heard.size() && !Session::precedes(frame.seq, heard[next].ack)) ++next;
        if (next < heard.size()) told = heard[next];
    }
    const auto arrived = by.arrival_of(frame.seq);
    recorder_->add(trace::AcknowledgedRecord{.flags = told.flags,
                                             .peer = by.peer,
                                             .seq = frame.seq,
                                             .back_ns = narrowed(arrived > 0 ? told.at - arrived : told.back),
                                             .time = static_cast<std::uint64_t>(told.at)});
}

void Tracer::offered(std::uint32_t peer, std::uint64_t token, std::uint64_t bytes, base::Nanoseconds now) noexcept {
    if (!recorder_) return;
    recorder_->add(
        trace::OfferRecord{.peer = peer, .message = token, .bytes = bytes, .time = static_cast<std::uint64_t>(now)});
}

void Tracer::explain(const Link& link, const Frame& frame, const Conversation& talk, base::Nanoseconds now) {
    const auto bytes = frame.wire_bytes();
    const auto verdict = sched::weigh(policy_, talk.candidates, bytes, now, link.place);
    std::vector<std::string> names;
    for (const auto slot : talk.links) {
        names.push_back(fmt::format("{} ({})", rails_[links_.at(slot).rail].traits().name, links_.at(slot).label));
    }
    // A piece goes where the plan for its message has a share, which may be another rail than that with the first delivery.
    const auto why = frame.piece_count > 0 && talk.links.size() > 1
                         ? fmt::format("{} bytes are planned for it", talk.claims[link.place])
                         : sched::reason(policy_, verdict, talk.candidates, names);
    log_.always("decision {}: {} of {} bytes to {} over {}: {}", ++explained_,
                trace::frame_name(static_cast<std::uint8_t>(frame.type)), bytes, peers_.name(link.peer),
                names[link.place], why);
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto& candidate = talk.candidates[i];
        log_.always(
            "  {} {}: delivered in {:.1f} us: waits {:.1f} us for {} bytes, then {:.1f} us and {:.2f} ns a byte",
            i == link.place ? "*" : " ", names[i], us(verdict.prospects[i].delivery), us(verdict.prospects[i].wait),
            candidate.backlog, us(candidate.cost.latency), us(candidate.cost.slope) * base::microsecond);
    }
    if (explained_ == to_explain_) log_.always("these were the {} decisions to explain", explained_);
}

}  // namespace railmux::rails

#include "rails/assessor.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "model/prior.hpp"
#include "rails/peer.hpp"
#include "rails/seal.hpp"

namespace railmux::rails {

using model::ProbeReply;
using model::ProbeRequest;

namespace {

// A reply that has not come after so long never will, or says nothing about the network any more.
constexpr base::Nanoseconds reply_limit = base::second;
// After a probe message, or when a link has just been accepted, more are expected: from then on times are taken. A large one
// may take much longer.
constexpr base::Nanoseconds mirror_alert = 5 * base::millisecond;
// So much of the application's hardly keeps a processor from a probe.
constexpr std::uint64_t few_bytes = 1024;
// Less is copied sooner than the clock is read.
constexpr std::size_t worth_timing = 256;

/// What the application has sent and received over the link's rail and its peer's.
std::uint64_t moved_by(const Link& link) noexcept { return link.traffic->sent_bytes + link.traffic->received_bytes; }

}  // namespace

Assessor::Assessor(Options options, base::Clock clock, RailSet& rails, LinkTable& links, const PeerTable& peers,
                   FramePool& pool, AssessorHost& host, base::Logger& log)
    : options_(std::move(options)),
      clock_(clock),
      rails_(rails),
      links_(links),
      pool_(pool),
      host_(host),
      log_(log),
      stored_(options_.store, rails, peers, log),
      late_(rails.capacity(), 0),
      spent_(rails.capacity()),
      limiters_(rails.capacity()) {
    for (auto& limiter : limiters_) limiter = std::make_shared<model::Limiter>();
}

Assessor::~Assessor() = default;

// --- Links come and go -----------------------------------------------------------------------------------------------

void Assessor::link_up(Link& link, base::Nanoseconds now) {
    const auto& rail = rails_[link.rail];
    link.assessed = std::make_unique<Assessed>(model::prior(rail.transport, rail.speed_bps()));
    host_.model_changed(link);
    if (!options_.probe || stopped_ || rail.transport == "self") return;
    if (!link.initiated) {
        timing_until_ = std::max(timing_until_, now + mirror_alert);
        return;
    }
    fresh_.push_back(link.slot);
}

void Assessor::link_down(Link& link) {
    if (link.assessed == nullptr) return;
    forget_probe(link);
    forget_results(link);
    link.assessed.reset();
}

/// Of a measurement that nobody has asked the result of, as the application's callback has thrown.
void Assessor::forget_results(const Link& link) {
    std::erase_if(results_, [&](const Result& r) { return r.rail == link.rail && r.link == link.id; });
}

std::uint64_t Assessor::largest_probe(std::uint32_t rail) const noexcept {
    constexpr std::uint64_t headers = FrameHeader::size + std::max(ProbeRequest::size, ProbeReply::size) + Seal::size;
    return std::min<std::uint64_t>(rails_[rail].traits().max_frame, FramePool::largest_on_rail) - headers;
}

void Assessor::begin(Link& link, model::ProbeOptions options, bool full) {
    forget_probe(link);
    options.max_bytes = std::min(options.max_bytes, largest_probe(link.rail));
    options.first_train = link.assessed->next_train;
    options.limiter = limiters_[link.rail];
    link.assessed->probe = std::make_unique<Probe>(std::move(options));
    link.assessed->probe->full = full;
    link.assessed->probe->before = spent_[link.rail];
    link.assessed->probe->since = clock_();
    probed_.push_back(link.slot);
}

void Assessor::measure(Link& link, const AssessOptions& options) {
    if (link.assessed == nullptr) return;
    forget_results(link);
    model::ProbeOptions probe{.kind = model::ProbeKind::full, .expected = link.assessed->model};
    probe.n = std::clamp(options.n, 2U, std::uint32_t{ProbeRequest::max_n});
    probe.grid = std::clamp(options.sizes, 2U, 1024U);
    probe.rounds = std::max(options.rounds, 1U);
    probe.changes.look_ahead = std::clamp(options.look_ahead, 3U, 16U);
    probe.changes.factor = options.factor > 1.1 ? std::min(options.factor, 1000.0) : 1.1;  // whatever is no number, too
    const auto largest = options.max_bytes == 0 ? model::ProbeMemory::largest : options.max_bytes;
    probe.max_bytes = largest;
    begin(link, std::move(probe), true);
    if (largest <= options_.eager_max || link.checksum) return;  // a put's checksum is looked for where messages are
    link.assessed->probe->large = std::min(largest, model::ProbeMemory::largest);
    link.assessed->probe->large_until = clock_() + reply_limit;
}

void Assessor::abandon(Link& link) {
    if (link.assessed == nullptr) return;
    forget_probe(link);
    end_puts(link);
}

void Assessor::stop() {
    stopped_ = true;
    fresh_.clear();
    repeats_.drop([](std::uint32_t) { return true; });
    while (!probed_.empty()) forget_probe(links_.at(probed_.back()));
}

void Assessor::stop(std::uint32_t peer) {
    const auto of_peer = [&](std::uint32_t slot) { return links_.at(slot).peer == peer; };
    std::erase_if(fresh_, of_peer);
    repeats_.drop(of_peer);
    const auto probed = probed_;
    for (const auto slot : probed) {
        if (of_peer(slot)) forget_probe(links_.at(slot));
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
    std::erase(fresh_, link.slot);
    repeats_.drop([&](std::uint32_t slot) { return slot == link.slot; });
    if (link.assessed->probe == nullptr) return;
    end_train(link, *link.assessed->probe);
    link.assessed->next_train = link.assessed->probe->prober.next_train();
    link.assessed->probe.reset();
    std::erase(probed_, link.slot);
}

base::Nanoseconds Assessor::repeat(base::Nanoseconds now) {
    return repeats_.due(host_.busy(), now, [&](std::uint32_t slot) { fresh_.push_back(slot); });
}

// --- Measuring -------------------------------------------------------------------------------------------------------

bool Assessor::step(base::Nanoseconds now) {
    next_step_ = never;
    bool any = begin_first_probe();
    for (std::size_t i = 0; i < probed_.size(); ++i) any = step(links_.at(probed_[i]), now) || any;
    return any;
}

bool Assessor::step(Link& link, base::Nanoseconds now) {
    auto& probe = *link.assessed->probe;
    if (probe.large > 0 && !puts_settled(link, probe, now)) {
        next_step_ = std::min(next_step_, probe.large_until);
        return false;
    }
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
    const auto application = host_.carries(link.rail) ? model::Application::sending : model::Application::idle;
    const auto action = probe.prober.next(now, application);
    if (action.kind == model::Action::Kind::wait) next_step_ = std::min(next_step_, action.until);
    if (action.kind == model::Action::Kind::finished) next_step_ = now;
    if (action.kind != model::Action::Kind::send) return false;
    timed_rail_ = link.rail;
    start_train(link, probe, action.train, now);
    send_due(link, probe);
    return true;
}

void Assessor::start_train(const Link& link, Probe& probe, const model::Train& train, base::Nanoseconds now) {
    if (!by_put(link, train.bytes)) make_room(train.bytes);  // before the first message is timed; so does the mirror
    probe.awaiting = true;
    probe.moved = moved_by(link) - link.underway.unacknowledged();
    ++awaiting_;
    probe.train = train;
    probe.next = 0;
    probe.sample = {.train = train};
    probe.begun = probe.last_sent = now;
}

/// The messages of the train that are due by now: all of them, or one after each delay.
void Assessor::send_due(Link& link, Probe& probe) {
    while (probe.next < probe.train.n) {
        const auto now = clock_();
        if (probe.next > 0 && now - probe.last_sent < probe.train.delay) return;
        if (probe.next == 0) {
            probe.begun = now;
        } else if (probe.train.delay > 0) {
            probe.sample.idle += now - probe.last_sent;
        }
        send_message(link, probe);
        probe.last_sent = clock_();
        probe.sample.send_cpu += probe.last_sent - now;
        spent_[link.rail].cpu += std::chrono::nanoseconds(probe.last_sent - now);
    }
    if (probe.train.late_look > 0) {
        late_[link.rail] = probe.last_sent + probe.train.late_look;
        ++late_links_;
    }
}

void Assessor::send_message(Link& link, Probe& probe) {
    const auto bytes = static_cast<std::uint32_t>(probe.train.bytes);
    const bool put = by_put(link, bytes);
    const auto head = model::encode(ProbeRequest{.train = probe.train.id,
                                                 .n = static_cast<std::uint16_t>(probe.train.n),
                                                 .index = static_cast<std::uint16_t>(probe.next),
                                                 .bytes = put ? 0 : bytes,
                                                 .put = put ? bytes : 0});
    ++probe.next;
    post(link, message(link, FrameType::probe, head, bytes, put));
}

void Assessor::post(Link& link, Frame* frame) {
    auto& spent = spent_[link.rail];
    ++spent.messages;
    spent.bytes += frame->wire_bytes();
    host_.post_now(link, frame);
}

Frame* probe_frame(FramePool& pool, FrameType type, std::span<const std::byte> head,
                   std::span<const std::byte> payload) {
    const auto bytes = FrameHeader::size + head.size() + payload.size();
    Frame* made = pool.take(bytes);
    made->type = type;
    made->bytes = static_cast<std::uint32_t>(bytes);
    made->acked = true;  // nobody acknowledges it: it is released when it is done
    write_header(made->data(), {.type = type});
    std::copy(head.begin(), head.end(), made->data() + FrameHeader::size);
    base::copy(made->data() + FrameHeader::size + head.size(), payload.data(), payload.size());
    return made;
}

void Assessor::make_room(std::uint64_t bytes) {
    if (payload_.size() < bytes) payload_.resize(static_cast<std::size_t>(bytes));
}

std::span<const std::byte> Assessor::payload(std::uint64_t bytes) {
    make_room(bytes);
    return std::span(payload_).first(static_cast<std::size_t>(bytes));
}

/// Where processors move the bytes, those of the application, either way, keep them from the train: it would show a queue, and
/// the link that is used look slower than one that is not. A network has others to move them, and while it still passes what it
/// had saved up its queues are short. Not so when a probe is repeated; but then something better is known.
bool Assessor::met_application(const Link& link, const Probe& probe) const noexcept {
    const bool queues = rails_[link.rail].traits().by_processors || link.assessed->repeated > 0;
    return queues && !probe.full && moved_by(link) - probe.moved > few_bytes;
}

/// An application's message is copied to its place, unless it was put there: so is this one, and the look that brought it lasts
/// until then.
Look Assessor::take(std::span<const std::byte> payload, Look look) {
    if (payload.size() < worth_timing) return look;
    if (place_.size() < payload.size()) place_.resize(payload.size());
    const auto begun = clock_();
    base::copy(place_.data(), payload.data(), payload.size());
    const auto took = clock_() - begun;
    look.at += took;
    if (look.receive_cpu > 0) look.receive_cpu += took;
    return look;
}

void Assessor::on_reply(Link& link, const ProbeReply& reply, std::span<const std::byte> payload, Look look) {
    const auto working = spending(link.rail, look.receive_cpu);
    auto* probe = link.assessed == nullptr ? nullptr : link.assessed->probe.get();
    if (probe == nullptr || !probe->awaiting || probe->next < probe->train.n) return;
    auto& sample = probe->sample;
    if (!model::answers(reply, sample)) return;  // but a train that was given up
    look = take(payload, look);
    sample.round_trip = look.at - probe->begun;
    sample.receive_cpu = look.receive_cpu;
    // Nobody had to look before the train had left.
    sample.blind = std::min(look.blind, std::max<base::Nanoseconds>(look.begun - probe->last_sent, 0));
    if (met_application(link, *probe)) sample.blind = sample.round_trip;  // as if nobody had looked meanwhile
    end_train(link, *probe);
    probe->prober.answered(sample, look.at);
}

// --- Being measured --------------------------------------------------------------------------------------------------

bool Assessor::on_probe(Link& link, std::span<const std::byte> body, Look look) {
    const auto working = spending(link.rail, look.receive_cpu);
    const auto request = model::parse_request(body);
    if (!request || request->bytes > largest_probe(link.rail) || link.assessed == nullptr) return false;
    look = take(body.subspan(ProbeRequest::size), look);
    timing_until_ = look.at + (link.probe_puts == nullptr ? mirror_alert : reply_limit);
    if (awaiting_ == 0) timed_rail_ = link.rail;
    auto& mirror = link.assessed->mirror;
    if (!mirror.arrived(*request, {look.at, look.blind, look.receive_cpu})) return true;
    if (request->put > 0 && (link.probe_puts == nullptr || request->put > link.probe_puts->bytes_there())) return false;
    if (link.asks_too_much()) return true;
    make_room(request->bytes);
    // What its sending takes from here on, copying included, is a message's, which the mirror does not hold.
    const auto head = model::encode(mirror.reply(clock_()));
    post(link, message(link, FrameType::probe_reply, head, request->bytes + request->put, request->put > 0));
    return true;
}

}  // namespace railmux::rails

#include "rails/ledger.hpp"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <limits>
#include <utility>

namespace railmux::rails {

namespace {

/// At most 4 s, and never 0, which means that nothing was predicted.
std::uint32_t narrowed_ns(sched::Ticks ticks) noexcept {
    constexpr sched::Ticks most = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(std::clamp<sched::Ticks>(ticks / sched::ticks_per_ns, 1, most));
}

}  // namespace

Ledger::Ledger(std::size_t rails, sched::Policy& policy, PeerTable& peers, LinkTable& links, const Looks& looks,
               const KeepingUp& keeping_up)
    : policy_(policy),
      peers_(peers),
      links_(links),
      looks_(looks),
      keeping_up_(keeping_up),
      paces_(rails),
      node_(rails) {}

// --- Handing over ----------------------------------------------------------------------------------------------------

void Ledger::charge(Link& link, Frame& frame, base::Nanoseconds now) {
    note_heavy(frame, link.rail);
    frame.alone = link.underway.unacknowledged() == 0 && ours(link.rail);
    frame.charged = true;
    Frame* const one = &frame;
    charge_row(link, {.frames = &one, .bytes = frame.wire_bytes(), .begun = now, .ended = now});
}

void Ledger::end_idle_leads() noexcept {
    for (const auto peer : idle_leads_) {
        if (auto* talk = peers_[peer].talk.get(); talk != nullptr) talk->leads.light.loaded();
    }
    set_leads_aside();
}

/// All but the first count as given to the link with the last; one that is noted goes by itself.
void Ledger::charge_row(Link& link, const Row& row) {
    const bool alone = ours(link.rail);
    Frame& first = *row.frames[0];
    const auto first_bytes = first.wire_bytes();
    auto& pace = paces_[link.rail];
    pace.sent(first_bytes, row.begun, alone);
    if (row.count > 1) pace.sent(row.bytes - first_bytes, row.ended, alone, row.count - 1);
    node_.sent(link.rail, row.bytes, row.ended);
    link.underway.handed(row.bytes, pace.train().begin);
    if (link.state != LinkState::live) return;  // it goes elsewhere soon
    if ((first.seq & told_mask_) == 0) [[unlikely]]
        return charge_noted(link, row);
    policy_.charge(peers_[link.peer].talk->candidates[link.place], row.bytes, row.count, row.ended);
}

/// Also notes what is expected, for the report and the trace: before the policy is told.
void Ledger::charge_noted(const Link& link, const Row& row) {
    const auto& talk = *peers_[link.peer].talk;
    const auto& candidate = talk.candidates[link.place];
    Frame& first = *row.frames[0];
    if (tracer_ != nullptr) tracer_->decided(link, {row.frames, row.count}, talk, row.begun);
    if (noted(first)) first.predicted = narrowed_ns(policy_.delivery(candidate, first.wire_bytes(), row.begun));
    policy_.charge(candidate, row.bytes, row.count, row.ended);
}

bool Ledger::much_late() const noexcept {
    std::uint64_t bytes = 0;
    for (const Frame* late : std::span(late_).first(late_count_)) bytes += late->wire_bytes();
    return bytes > much;
}

/// Link by link: what is known of a rail is looked at once for all that was given to it in a row; and of what it costs nothing
/// is learnt between two rows. Heavy ones are noted, each by itself.
void Ledger::charge_late() {
    const auto late = std::span(late_).first(late_count_);
    late_count_ = 0;
    ++reckonings_;
    for (std::size_t next = 0; next < late.size();) {
        Frame& first = *late[next];
        Row row{.frames = &late[next], .bytes = first.wire_bytes(), .begun = first.sent, .ended = first.sent};
        first.charged = true;
        const auto slot = first.link;
        const bool heavy = first.payload > sched::light_bytes;
        const bool alone = heavy || noted(first);
        for (++next; !alone && next < late.size() && late[next]->link == slot && !noted(*late[next]) &&
                     late[next]->payload <= sched::light_bytes;
             ++next) {
            late[next]->charged = true;
            row.bytes += late[next]->wire_bytes();
            row.ended = late[next]->sent;
            ++row.count;
        }
        Link& link = links_.at(slot);
        if (link.state == LinkState::live) {
            auto& talk = *peers_[link.peer].talk;
            if (row.begun - talk.refreshed > fresh) refresh(talk, row.begun);
            look(link);
        }
        charge_row(link, row);
        if (heavy && link.state == LinkState::live && peers_[link.peer].talk->has_choice())
            note(link, first, Asked::no);
    }
}

/// The first that is put off, and after it those that are noted. In a long burst without a flush what they cost is reckoned at
/// once.
bool Ledger::follow(const Link& link, Conversation& talk, const Frame& frame, base::Nanoseconds now) noexcept {
    if (late_count_ == 1 || noted(frame)) {
        const bool alone = talk.session.heard() == frame.seq && frame.wire_bytes() <= small_bytes && ours(link.rail);
        talk.followed = {.link = link.slot, .seq = frame.seq, .alone = alone, .sent = now};
    }
    if (late_count_ == late_.size()) charge_late();
    return late_count_ < most_late;
}

void Ledger::answered(Link& link, Conversation::Followed& followed, const FrameHeader& header,
                      base::Nanoseconds now) noexcept {
    followed.link = no_link;
    if (header.held >= held_longest) return;
    followed.answered = now;
    followed.held = header.held;
    if (followed.alone) link.echo.heard(now - followed.sent - header.held, now, busy_.time());
}

void Ledger::uncharge(Frame& frame, base::Nanoseconds now) noexcept {
    if (!std::exchange(frame.charged, false)) return;
    Link& link = links_.at(frame.link);
    paces_[link.rail].lost(link.underway.over(frame.wire_bytes()));
    node_.left(link.rail, paces_[link.rail].backlog(), now);
}

// --- What has landed ------------------------------------------------------------------------------------------------

/// What the rail has not been given yet. One that is full has enough to do, whatever waits for it.
std::uint64_t Ledger::unposted(const Link& link) noexcept {
    if (link.refused) return 0;
    std::uint64_t bytes = 0;
    for (const Frame* frame = link.outbox.front(); frame != nullptr; frame = frame->next) bytes += frame->wire_bytes();
    return bytes;
}

/// What has landed waits for the peer, and no longer on the rail.
void Ledger::look_for_landed(const Conversation& talk, base::Nanoseconds now) noexcept {
    for (const auto slot : talk.links) note_landed(links_.at(slot), now);
}

void Ledger::note_landed(Link& link, base::Nanoseconds now) noexcept {
    if (!link.underway.worth_asking(now)) return;
    const auto unconfirmed = link.over_rail->underway(link.id);
    if (!unconfirmed) return;
    const auto more = link.underway.landed_but(*unconfirmed + link.queued_bytes);
    if (more == 0) return;
    paces_[link.rail].delivered(more, 0);
    for (auto* timed : {&link.timed, &link.timed_end}) {
        if (timed->landed == 0 && timed->end <= link.underway.landed()) timed->landed = now;
    }
    // One link has been asked; of others the rail has no more than it takes no account of.
    const bool all = paces_[link.rail].backlog() <= link.underway.on_the_way() + sched::Pace::left_bytes;
    const auto seen = sched::Seen{.exact = all, .unposted = unposted(link)};
    sched::settle(paces_, std::uint64_t{1} << link.rail, node_, busy_, now, seen);
}

bool Ledger::balanced() const {
    std::vector<std::uint64_t> on_the_way(paces_.size(), 0);
    links_.for_each([&](const Link& link) { on_the_way[link.rail] += link.underway.on_the_way(); });
    return std::ranges::equal(on_the_way, paces_, {}, {}, &sched::Pace::backlog);
}

// --- Acknowledgements ------------------------------------------------------------------------------------------------

/// The first of a row, which is taken off already.
void Ledger::Taking::begin_row(std::uint32_t link) noexcept {
    link_ = link;
    left_ = ledger_.links_.at(link).underway.unacknowledged();
}

void Ledger::Taking::end_row() noexcept {
    if (count_ > 0) {
        Link& link = ledger_.links_.at(link_);
        ledger_.paces_[link.rail].delivered(link.underway.over(bytes_), std::exchange(count_, 0));
        ledger_.released_ |= std::uint64_t{1} << link.rail;
    }
    link_ = no_link;
    bytes_ = 0;
}

void Ledger::acknowledged(Frame& frame, const Link& by, const FrameHeader& header, base::Nanoseconds now) {
    released_ |= std::uint64_t{1} << frame.rail;
    if (std::exchange(frame.charged, false)) {
        learn_from(by, header, frame, now);
    } else if (frame.link != no_link) {
        // Acknowledged before it can have arrived: the other side makes that up.
        const auto left = std::remove(late_.begin(), late_.begin() + static_cast<std::ptrdiff_t>(late_count_), &frame);
        late_count_ = static_cast<std::size_t>(left - late_.begin());
    }
    if (frame.predicted != 0) [[unlikely]]
        compare(by, header, frame, now);
}

/// What the acknowledgement of `frame` says: a small one shows the latency of its link, large ones the rate of the rail.
void Ledger::learn_from(const Link& by, const FrameHeader& header, const Frame& frame, base::Nanoseconds now) {
    Link& link = links_.at(frame.link);
    auto& pace = paces_[link.rail];
    const auto bytes = frame.wire_bytes();
    const bool small = bytes <= small_bytes;
    pace.delivered(link.underway.over(bytes));
    if (link.state != LinkState::live) return;
    // How long an acknowledgement was kept back is known of the newest frame.
    const bool newest = frame.seq + 1 == header.ack && header.held < held_longest;
    if (frame.alone && newest && small && frame.link == by.slot) {
        link.echo.heard(now - frame.sent - header.held, now, busy_.time());
    }
    // An acknowledgement that came with data may have waited behind other data.
    if (newest && small && header.type == FrameType::ack && (header.flags & frame_flag::behind) == 0 &&
        pace.backlog() > 0) {
        const auto& candidate = peers_[link.peer].talk->candidates[link.place];
        policy_.left(candidate, pace.backlog(), now - header.held - 2 * candidate.cost.latency / sched::ticks_per_ns);
    }
    // With other links it may be the answer that was late, or what another one held up: then timed() tells. The only one that
    // counts here need not be so for the peer.
    if (const auto& talk = *peers_[link.peer].talk;
        talk.links.size() > 1 && (talk.only != link.place || by.slot != link.slot))
        return;
    const auto& train = pace.train();
    if (pace.backlog() > 0 || train.bytes < sched::Pace::timed_bytes) return;
    if ((header.flags & frame_flag::behind) != 0) return;                       // it is the peer that is late
    const std::uint32_t with = header.type == FrameType::ack ? 0 : header.aux;  // bytes that came back together with it
    learn_from_train(link, train, with > small_bytes ? with : 0, now,
                     newest ? std::optional(header.held) : std::nullopt);
}

/// As measured by traffic, or by the model.
sched::Ticks Ledger::latency(const Link& link, base::Nanoseconds now) const noexcept {
    const auto thought = peers_[link.peer].talk->costs[link.place].latency;
    const auto heard = link.echo.latency(now, busy_.time(), thought);
    return heard > 0 ? heard : thought;
}

/// All that was on the rail of this link, the last one of which it carried, is acknowledged, together with so many bytes that
/// came back over it; the acknowledgement was `held` by the peer, if that is known. On a rail that is only tried again it is
/// enough to know that it was not held for long.
void Ledger::learn_from_train(const Link& link, const sched::Train& train, std::uint32_t with, base::Nanoseconds now,
                              std::optional<base::Nanoseconds> held) {
    auto& pace = paces_[link.rail];
    if (!train.undisturbed) return;
    const auto& talk = *peers_[link.peer].talk;
    const auto ways = 2 * latency(link, now) + sched::times(with, talk.candidates[link.place].cost.slope);
    const auto service = now - train.begin - held.value_or(0) - ways / sched::ticks_per_ns;
    const bool together = (train.end - train.begin) * 8 <= service;
    const bool in_time = (now - looks_.looked) * 8 <= service;  // we had just looked, and it was not there
    const bool known = held || sched::acknowledged_within * 8 <= service || pace.tried(busy_.time());
    if (together && in_time && known)
        pace.lone({train.bytes, train.messages, service}, talk.candidates[link.place].cost.per_byte, now, busy_.time());
}

/// What was predicted of the frame, and what came of it. That is known of the newest one of an acknowledgement; the others may
/// have arrived at any time since the acknowledgement before.
void Ledger::compare(const Link& by, const FrameHeader& header, const Frame& frame, base::Nanoseconds now) noexcept {
    auto& known = peers_[by.peer];
    const auto& followed = known.talk->followed;
    auto held = header.held;
    auto way_back = known.talk->candidates[by.place].cost.latency / sched::ticks_per_ns;
    if (const auto arrived = by.arrival_of(frame.seq); arrived > 0) {
        held = now - arrived;
        way_back = 0;
    } else if (followed.answered > 0 && followed.seq == frame.seq) {  // it was heard before
        now = followed.answered;
        held = followed.held;
    } else if (frame.seq + 1 != header.ack || held >= held_longest) {
        return;
    }
    const auto real = std::max<base::Nanoseconds>(now - frame.sent - held - way_back, 0);
    const base::Nanoseconds predicted = frame.predicted;
    auto& traffic = known.traffic[frame.rail];
    ++traffic.timed_frames;
    traffic.predicted_ns += static_cast<std::uint64_t>(predicted);
    traffic.real_ns += static_cast<std::uint64_t>(real);
    traffic.error_ns += static_cast<std::uint64_t>(std::abs(real - predicted));
}

// --- For who chooses -------------------------------------------------------------------------------------------------

std::size_t Ledger::lone_trial(const Conversation& talk, std::size_t choice, std::uint64_t bytes,
                               base::Nanoseconds now) noexcept {
    const auto& candidates = talk.candidates;
    if (!policy_.predicts()) return candidates.size();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        Link& link = links_.at(talk.links[i]);
        if (i == choice || candidates[i].spare || !link.lone_trial.due(busy_.time()) || link.echo.latency(now) > 0)
            continue;
        auto hoped = candidates[i];
        if (hoped.cost.latency > sched::LoneTrial::most_doubted * candidates[choice].cost.latency) continue;
        hoped.cost.latency = 0;
        if (policy_.delivery(hoped, bytes, now) >= policy_.delivery(candidates[choice], bytes, now)) continue;
        link.lone_trial.went(busy_.time());
        return i;
    }
    return candidates.size();
}

void Ledger::refresh(Conversation& talk, base::Nanoseconds now) noexcept {
    talk.refreshed = now;
    ++reckonings_;
    if (talk.has_choice()) look_for_landed(talk, now);
    node_.look(now, paces_);
    sched::Candidate* trusted = nullptr;
    auto least = std::numeric_limits<sched::Ticks>::max();
    for (std::size_t i = 0; i < talk.links.size(); ++i) {
        auto& candidate = talk.candidates[i];
        const auto& pace = paces_[candidate.rail];
        sched::look_at(candidate, talk.costs[i], pace, node_, looks_.looked);
        const Link& link = links_.at(talk.links[i]);
        candidate.joins = false;  // nothing of ours is what others handed over
        candidate.recent = talk.follows && link.slot == talk.last_link;
        candidate.heavy_received = link.heavy_received;
        const auto own = pace.sustained();
        candidate.supposed = own == 0 || pace.doubtful();
        candidate.shown = candidate.supposed ? std::max(own, link.shown_there) : own;
        candidate.latency_bound = link.passed.any(now, 1) ? link.passed.least() : 0;
        candidate.bounded = pace.correct(candidate.cost, now, busy_.time());
        const auto heard = link.echo.latency(now, busy_.time(), talk.costs[i].latency);
        if (heard > 0) candidate.cost.latency = heard;
        if (const auto bound = link.echo.bound(now); heard == 0 && bound > 0)
            candidate.cost.latency = std::min(candidate.cost.latency, bound);
        if (heard == 0 && candidate.recent) trusted = &candidate;
        if (const auto arrived = node_.take_arrivals(candidate.rail); arrived > 0)
            policy_.charge(candidate, arrived, now);
        candidate.joins = !link.outbox.empty();
        candidate.behind = talk.behind_there || keeping_up_.busy();
        candidate.favoured_light = candidate.behind && i == talk.light_contest.favoured();
        candidate.favoured_heavy =
            candidate.behind && i == talk.heavy_contest.favoured() && talk.heavy_contest.lively(now);
        least = std::min(least, candidate.cost.latency);
    }
    sched::hope(talk.candidates, paces_, busy_.time());
    sched::even_out(talk.candidates, paces_, busy_.time());
    // The peer chose this link, and knows what we do not: it is worth trying.
    if (trusted != nullptr) trusted->cost.latency = std::min(trusted->cost.latency, least);
    for (std::size_t i = 0; i < talk.links.size(); ++i) {
        talk.candidates[i].cost.latency += links_.at(talk.links[i]).lag.least(busy_.time());
    }
    if (!policy_.predicts()) return;  // it takes no account of what is spare
    sched::suppose_rates(talk.candidates);
    const auto before = talk.spreading.now();
    talk.spreading.tell(talk.candidates, paces_, now);
    if (talk.spreading.now() != before) talk.leads.heavy.until = talk.leads.light.until = 0;  // they go another way now
    talk.processors.choose(talk.candidates);
    talk.only = sched::only_choice(talk.candidates);
}

}  // namespace railmux::rails

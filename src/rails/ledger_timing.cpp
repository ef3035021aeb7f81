// Ledger, timing: frames of which the peer says when they came, and what that shows of the rail.
#include <algorithm>
#include <utility>

#include "rails/ledger.hpp"

namespace railmux::rails {

/// Whether one like this is not to be asked of yet.
bool Ledger::rests(const Link::Timed& timed, base::Nanoseconds spacing, base::Nanoseconds now) noexcept {
    return now - timed.sent < (timed.awaited ? time_out : spacing);
}

bool Ledger::due(const Link& link, const Frame& frame, base::Nanoseconds now) const noexcept {
    auto ahead = paces_[link.rail].backlog() + frame.wire_bytes();
    for (const Frame* late : std::span(late_).first(late_count_)) {
        if (late->rail == link.rail) ahead += late->wire_bytes();
    }
    const bool grown = ahead >= sched::Pace::timed_bytes && ahead > 2 * link.timed.ahead;
    return grown || !rests(link.timed, link.late ? late_time_spacing : time_spacing, now);
}

Ledger::Asked Ledger::ask(const Link& link, Frame& frame, base::Nanoseconds now, bool last) const noexcept {
    const bool due = this->due(link, frame, now);
    if (!due && (!last || rests(link.timed_end, 0, now))) return Asked::no;
    frame.flags |= frame_flag::timed;
    add_flag(frame.data(), frame_flag::timed);
    return due ? Asked::due : Asked::at_end;
}

void Ledger::note(Link& link, const Frame& frame, Asked asked) noexcept {
    const bool heavy = frame.payload > sched::light_bytes;
    if (asked == Asked::no && !heavy) return;
    const auto one = timing_of(link, frame);
    if (asked == Asked::due && one.ahead == frame.wire_bytes()) {
        link.before = std::exchange(link.latest, {});
        link.asked = frame.seq;
    }
    if (asked != Asked::no) (asked == Asked::due ? link.timed : link.timed_end) = one;
    if (heavy) link.latest = asked == Asked::no ? one : Link::Timed{};
    link.timed_waits = link.timed_waits || one.waits;
}

/// ... of a frame that is the last that was charged. It may have left since, together with others. All frames of a large
/// message are decided at one time, and some of them may have left before others.
Link::Timed Ledger::timing_of(const Link& link, const Frame& frame) const noexcept {
    const auto& pace = paces_[link.rail];
    const auto& posting = link.posting;
    const auto* first = link.outbox.front();
    const auto begun = pace.train().begin;
    return {.seq = frame.seq,
            .awaited = true,
            .ours = ours(link.rail),
            .alone = pace.backlog() == frame.bytes && frame.bytes > small_bytes,  // bulk shows rates
            .messages = std::max<std::uint32_t>(frame.seq + 1 - peers_[link.peer].talk->session.heard(), 1),
            .ahead = pace.backlog(),
            .since_idle = link.underway.handed_since(begun),
            .idle = begun == posting.first && begun > posting.before ? posting.at : begun,
            .position = pace.handed(),
            .end = link.underway.handed(),
            .sent = frame.sent >= posting.first ? std::max(frame.sent, posting.at) : frame.sent,
            .waits = frame.queued,
            .train_waits = first != nullptr && first->posted == 0 && first->sent == begun && begun > link.last_posted};
}

void Ledger::time_gathered(Link& link, base::Nanoseconds now) {
    Frame* const last = link.outbox.back();
    if (last == link.outbox.front() || last->acked || last->piece_count > 0 || last->posted > 0) return;
    if (last->wire_bytes() > sched::light_bytes || (last->flags & frame_flag::timed) != 0) return;
    if (rests(link.timed_end, gathered_time_spacing, now)) return;
    charge_late();
    auto& end = link.timed_end;
    end = timing_of(link, *last);
    end.alone = end.ahead == end.since_idle && end.since_idle > small_bytes;
    link.timed_waits = true;
    last->flags |= frame_flag::timed;
    add_flag(last->data(), frame_flag::timed);
}

void Ledger::posting(Link& link, base::Nanoseconds now) noexcept {
    if (!std::exchange(link.timed_waits, false)) return;
    for (auto* timed : {&link.timed, &link.timed_end, &link.latest}) {
        if (!std::exchange(timed->waits, false) || link.refused) continue;
        timed->sent = now;
        if (timed->train_waits) timed->idle = now;
    }
    const auto* first = link.outbox.front();
    if (link.refused || first == nullptr) return;
    link.posting = {.first = first->sent, .at = now, .before = link.last_posted};
}

std::optional<Link::Timed> Ledger::timed(Link& link, const FrameHeader& header, const Arrival& there,
                                         base::Nanoseconds now) noexcept {
    auto* timed = &link.timed;
    if (!timed->awaited || timed->seq != header.seq) timed = &link.timed_end;
    if (!timed->awaited || timed->seq != header.seq) return std::nullopt;  // another one has been asked for since
    timed->awaited = false;
    link.passed.note(sched::to_ticks(now - timed->sent) / 2, now);
    auto& talk = *peers_[link.peer].talk;
    const auto& cost = talk.candidates[link.place].cost;
    const auto at = static_cast<std::uint64_t>(there.at);
    talk.clock.answered(timed->sent, at, now, sched::times(timed->ahead, cost.slope) / sched::ticks_per_ns,
                        latency(link, now) / sched::ticks_per_ns);
    timed->arrived = talk.clock.here(at, timed->sent, now);
    timed->by_host = there.by_host;
    if (talk.clock.known()) paces_[link.rail].told_after(now - timed->arrived);
    const bool known = timed->ours && ours(link.rail) && (header.flags & frame_flag::behind) == 0;  // who is late
    return known ? std::optional(*timed) : std::nullopt;
}

void Ledger::learn_from_timed(Link& link, const Link::Timed& timed, base::Nanoseconds now) noexcept {
    const auto& talk = *peers_[link.peer].talk;
    const auto& cost = talk.candidates[link.place].cost;
    const auto thought = latency(link, now) / sched::ticks_per_ns;
    const auto way = std::max(thought, talk.clock.least_way(now));
    // The model may have a latency that a probe was held up for: of what passes at once nearly all would seem to be that.
    const auto most_way = std::min(way, link.passed.least() / sched::ticks_per_ns);
    // Where the process looked later than its host had it, that is no doing of the rail's.
    const auto there = timed.landed > 0 ? std::min(timed.arrived, timed.landed) : timed.arrived;
    const auto service = std::max<base::Nanoseconds>(there - timed.sent - way, 0);
    const auto took = sched::to_ticks(there - timed.sent);
    const auto predicted = way * sched::ticks_per_ns + sched::times(timed.ahead, cost.slope);
    link.late = took > predicted + predicted / 2;
    if (timed.alone) link.lag.arrived(took, predicted, busy_.time());
    auto& pace = paces_[link.rail];
    if (timed.ahead < sched::Pace::timed_bytes) return;
    if (!timed.by_host && pace.ends_told(now, told_of_late)) return;  // no need for what may be the process's doing
    const auto known = pace.per_byte();
    pace.lone(
        {.bytes = timed.ahead,
         .messages = timed.messages,
         .service = service,
         .by_host = timed.by_host,
         .end = {there, timed.position},
         .since_idle = timed.since_idle,
         .service_since_idle = std::max<base::Nanoseconds>(there - timed.idle - most_way, 0),
         .longest_since_idle = std::max<base::Nanoseconds>(there - timed.idle - thought, 0) + talk.clock.doubt(now)},
        cost.per_byte, now, busy_.time());
    if (pace.per_byte() > known) link.lag = {};  // that is why they were late
}

void Ledger::learn_from_before(Link& link, const FrameHeader& header, const ArrivalTimes& times,
                               base::Nanoseconds now) noexcept {
    if (!link.before.awaited || link.asked != header.seq) return;
    auto before = std::exchange(link.before, {});
    if (before.seq != times.before_seq || times.before.at == 0) return;
    // By then the clocks have gone apart by more than hosts are off by, or nothing is known of the peer's yet.
    const auto& clock = peers_[link.peer].talk->clock;
    if (!clock.known() || now - before.sent > told_later) return;
    if (!before.ours || !ours(link.rail) || (header.flags & frame_flag::behind) != 0) return;  // who is late
    const auto there = static_cast<std::uint64_t>(times.before.at);
    before.arrived = clock.here(there, before.sent, now);
    before.by_host = times.before.by_host;
    before.alone = false;  // it was when it was sent; others may have followed it
    learn_from_timed(link, before, now);
}

ShownRate Ledger::next_rate_to_tell(Conversation& talk) noexcept {
    if (talk.links.empty()) return {};
    talk.told = (talk.told + 1) % static_cast<std::uint32_t>(talk.links.size());
    const auto& link = links_.at(talk.links[talk.told]);
    return {.rail = static_cast<std::uint16_t>(link.rail),
            .remote_rail = link.remote_rail,
            .per_byte = paces_[link.rail].sustained()};
}

void Ledger::heard_rate(const Conversation& talk, const ShownRate& rate) noexcept {
    for (const auto slot : talk.links) {
        auto& link = links_.at(slot);
        if (link.rail == rate.remote_rail && link.remote_rail == rate.rail)
            link.shown_there = std::min(rate.per_byte, slowest_told);
    }
}

}  // namespace railmux::rails

// Ledger, timing: frames of which the peer says when they came, and what that shows of the rail.
#include <algorithm>
#include <utility>

#include "rails/ledger.hpp"

namespace railmux::rails {

void Ledger::time(Link& link, Frame& frame, base::Nanoseconds now, bool last) noexcept {
    const auto ahead = paces_[link.rail].backlog() + frame.wire_bytes();
    const auto rests = [&](const Link::Timed& timed, base::Nanoseconds spacing) {
        return now - timed.sent < (timed.awaited ? time_out : spacing);
    };
    const bool grown = ahead >= sched::Pace::timed_bytes && ahead > 2 * link.timed.ahead;
    const bool due = grown || !rests(link.timed, link.late ? late_time_spacing : time_spacing);
    const bool asks = due || (last && !rests(link.timed_end, 0));
    const bool heavy = frame.payload > sched::light_bytes;
    if (!asks && !heavy) return;
    const auto& session = peers_[link.peer].talk->session;
    const auto& pace = paces_[link.rail];
    const auto train = pace.backlog() > 0 ? pace.train() : sched::Train{.begin = now};
    const auto* first = link.outbox.front();
    const bool train_waits = first == nullptr ? pace.backlog() == 0 : first->posted == 0 && first->sent == train.begin;
    const Link::Timed one{.seq = frame.seq,
                          .awaited = true,
                          .ours = ours(link.rail),
                          .alone = ahead == frame.bytes && frame.bytes > small_bytes,  // bulk shows rates
                          .messages = session.numbered() - session.heard(),
                          .ahead = ahead,
                          .since_idle = link.underway.handed_since(train.begin) + frame.wire_bytes(),
                          .idle = train.begin,
                          .position = pace.handed() + frame.wire_bytes(),
                          .end = link.underway.handed() + frame.wire_bytes(),
                          .sent = now,
                          .waits = true,
                          .train_waits = train_waits};
    link.timed_waits = true;
    if (asks) {
        (due ? link.timed : link.timed_end) = one;
        if (due && ahead == frame.wire_bytes()) {
            link.before = std::exchange(link.latest, {});
            link.asked = frame.seq;
        }
    }
    if (heavy) link.latest = asks ? Link::Timed{} : one;
    if (!asks) return;
    frame.flags |= frame_flag::timed;
    add_flag(frame.data(), frame_flag::timed);
}

void Ledger::time_gathered(Link& link, base::Nanoseconds now) {
    Frame* const last = link.outbox.back();
    if (last == link.outbox.front() || last->acked || last->piece_count > 0 || last->posted > 0) return;
    if (last->wire_bytes() > sched::light_bytes || (last->flags & frame_flag::timed) != 0) return;
    const auto& timed = link.timed_end;
    if (now - timed.sent < (timed.awaited ? time_out : gathered_time_spacing)) return;
    charge_late();
    const auto& session = peers_[link.peer].talk->session;
    const auto& pace = paces_[link.rail];
    const auto since_idle = link.underway.handed_since(pace.train().begin);
    link.timed_end = {.seq = last->seq,
                      .awaited = true,
                      .ours = ours(link.rail),
                      .alone = pace.backlog() == since_idle && since_idle > small_bytes,
                      .messages = session.numbered() - session.heard(),
                      .ahead = pace.backlog(),
                      .since_idle = since_idle,
                      .idle = pace.train().begin,
                      .position = pace.handed(),
                      .end = link.underway.handed(),
                      .sent = now,
                      .waits = true};
    link.timed_waits = true;
    last->flags |= frame_flag::timed;
    add_flag(last->data(), frame_flag::timed);
}

void Ledger::posting(Link& link, base::Nanoseconds now) noexcept {
    for (auto* timed : {&link.timed, &link.timed_end, &link.latest}) {
        if (!timed->waits || link.refused) continue;
        timed->sent = now;
        if (timed->train_waits) timed->idle = now;
    }
    posted_at_once(link);
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

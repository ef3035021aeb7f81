// RailManager: whether links that say nothing are still there.
#include <fmt/format.h>

#include "rails/rail_manager.hpp"

namespace railmux::rails {

namespace {
// Of all links of a process together on average one keepalive in this time (all links have the same turn): with a thousand of
// them looking after them takes a thousandth of a core, and a silent one is noticed after some 6 s.
constexpr base::Nanoseconds keepalive_gap = 5 * base::millisecond;
// Kernels hold an acknowledgement back for 40 ms: sooner there is no use in looking for that of a keepalive.
constexpr base::Nanoseconds keepalive_answered = 60 * base::millisecond;
// An idle link is sent something at least every fourth turn (Silence::wants_keepalive) of the other side, which may have as
// many links as a thousand: without anything for longer than that, from somebody who is heard elsewhere, is no chance.
constexpr base::Nanoseconds passed_over_longest = 30 * base::second;
// Whoever said something so many turns ago is there.
constexpr int recent_turns = 2;
}  // namespace

/// Something is sent over a link that nobody looks at now.
void RailManager::unsettle(Link& link, base::Nanoseconds now) {
    link.silence.unsettle(now);
    if (!rails_[link.rail].traits().keepalive || options_.keepalive == 0) return;
    next_watch_ = std::min(next_watch_, now + Silence::period);
    schedule(next_watch_);
}

/// Looks at the links that something is outstanding on and, each in its turn, at idle ones.
void RailManager::watch_links(base::Nanoseconds now) {
    if (options_.keepalive == 0) return;
    if (now < next_watch_) return schedule(next_watch_);
    const bool turn = now >= next_turn_;
    base::Nanoseconds live = 0;
    auto next = never;
    next_watch_ = never;  // what is sent meanwhile sets it
    links_.for_each([&](Link& link) {
        if (link.state != LinkState::live || !rails_[link.rail].traits().keepalive) return;
        ++live;
        if (link.silence.settled() && turn) {
            keep_alive(link, now);
            if (!link.silence.settled()) next = std::min(next, now + keepalive_answered);
            return;
        }
        if (!link.silence.settled()) next = std::min(next, now + watch_link(link, now));
    });
    if (turn) {
        turn_ = std::max(options_.keepalive, live * keepalive_gap);
        next_turn_ = live == 0 ? never : now + turn_;
    }
    next_watch_ = std::min({next_watch_, next, next_turn_});
    schedule(next_watch_);
}

/// A link that nothing was sent over for a while.
void RailManager::keep_alive(Link& link, base::Nanoseconds now) {
    const auto& talk = *peers_[link.peer].talk;
    if (peers_[link.peer].left) return;
    if (link.queued_bytes > 0) return unsettle(link, now);  // what waits there will tell
    const auto pulse = rails_[link.rail].rail->pulse(link.id);
    if (!pulse.known && gone_unheard(link, now)) return;
    const auto received = pulse.known ? pulse.received : static_cast<std::uint64_t>(link.said_at);
    if (!link.silence.wants_keepalive(received)) return;
    link.silence.unsettle(now);  // here, as whoever sends over a settled link has it looked at sooner
    enqueue(link, ack_frame(talk), now);
}

/// Returns when to look again.
base::Nanoseconds RailManager::watch_link(Link& link, base::Nanoseconds now) {
    using Finding = Silence::Finding;
    const auto pulse = rails_[link.rail].rail->pulse(link.id);
    if (!pulse.known && gone_unheard(link, now)) return never;
    // What was not posted yet, or refused, is not outstanding, but will be: it is no time to stop looking.
    if (!pulse.outstanding && !link.outbox.empty()) return Silence::period;
    const auto& talk = *peers_[link.peer].talk;
    const auto& cost = talk.costs[link.place];
    // The model may be a guess: what messages took counts, too.
    const auto round_trip = 2 * std::max(cost.latency, link.echo.latency(now)) / sched::ticks_per_ns;
    const auto unanswered = link.underway.unacknowledged() + link.gets * options_.fragment;
    const auto predicted = round_trip + sched::times(unanswered, cost.per_byte) / sched::ticks_per_ns;
    Silence::Limits limits;
    limits.overdue += round_trip;
    limits.doubtful += 5 * predicted;
    // Counted from the keepalive on, before which an idle link may have been dead already.
    limits.lost = std::max(options_.silence - std::min(options_.keepalive, options_.silence / 2), limits.doubtful);
    const auto finding = link.silence.look(pulse, limits, now);
    const bool lost = finding == Finding::lost || (finding == Finding::doubtful && heard_elsewhere(link, now));
    if (lost) {
        const auto silent = static_cast<double>(link.silence.silent()) / static_cast<double>(base::second);
        break_off(link, fmt::format("nothing acknowledged for {:.3f} s", silent), now);
        return never;
    }
    if (finding == Finding::overdue) {
        for (const auto slot : talk.links) {
            Link& other = links_.at(slot);
            const bool idle = other.silence.settled() && rails_[other.rail].traits().keepalive;
            if ((&other != &link && !idle) || !other.outbox.empty()) continue;
            enqueue(other, ack_frame(talk), now);
            if (idle) other.silence.expect(rails_[other.rail].rail->pulse(other.id));
        }
    }
    if (finding == Finding::settled) return never;
    return link.silence.silent() > 0 ? Silence::short_period : Silence::period;
}

/// A link whose network tells nothing: what is heard of the process at its other end must do. True if it is lost.
bool RailManager::gone_unheard(Link& link, base::Nanoseconds now) {
    const auto recent = recent_turns * turn_;
    const auto elsewhere = std::ranges::any_of(peers_[link.peer].talk->links, [&](std::uint32_t slot) {
        return slot != link.slot && now - links_.at(slot).said_at <= recent;
    });
    link.unheard.look(link.said_at, elsewhere, recent, now);
    const bool passed_over = link.unheard.passed_over() >= std::max(passed_over_longest, 6 * turn_);
    if (!passed_over && link.unheard.silent() < options_.unheard) return false;
    const auto silent = static_cast<double>(link.unheard.silent()) / static_cast<double>(base::second);
    break_off(link, fmt::format("nothing came for {:.1f} s{}", silent, passed_over ? ", but over other links" : ""),
              now);
    return true;
}

/// Whether the peer's host shows over another link that it is there.
bool RailManager::heard_elsewhere(const Link& silent, base::Nanoseconds now) {
    const auto& links = peers_[silent.peer].talk->links;
    return std::ranges::any_of(links, [&](std::uint32_t slot) {
        const Link& other = links_.at(slot);
        return &other != &silent && std::max(other.silence.heard_at(), other.said_at) > now - silent.silence.silent();
    });
}

}  // namespace railmux::rails

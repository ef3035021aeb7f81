#include "rails/watcher.hpp"

#include <fmt/format.h>

#include "rails/ack_route.hpp"

namespace railmux::rails {

namespace {
// Of all links of a process together on average one keepalive in this time (all links have the same turn): with a thousand of
// them looking after them takes a thousandth of a core, and a silent one is noticed after some 6 s.
constexpr base::Nanoseconds keepalive_gap = 5 * base::millisecond;
// Kernels hold an acknowledgement back for 40 ms: sooner there is no use in looking for that of a keepalive.
constexpr base::Nanoseconds keepalive_answered = 60 * base::millisecond;
// An idle link is sent something in half that time (Silence::wants_keepalive), however many links the other side has, up to
// some three thousand: without anything for longer, from somebody who is heard elsewhere, is no chance.
constexpr base::Nanoseconds passed_over_longest = 30 * base::second;
// Whoever said something so many turns ago is there.
constexpr int recent_turns = 2;
}  // namespace

base::Nanoseconds Watcher::link_up(base::Nanoseconds now) noexcept {
    next_turn_ = std::min(next_turn_, now + options_.keepalive);
    return next_look_ = std::min(next_look_, next_turn_);
}

base::Nanoseconds Watcher::unsettle(Link& link, base::Nanoseconds now) noexcept {
    link.silence.unsettle(now);
    if (!rails_[link.rail].traits().keepalive || options_.keepalive == 0) return never;
    return next_look_ = std::min(next_look_, now + Silence::period);
}

base::Nanoseconds Watcher::look(base::Nanoseconds now) {
    if (options_.keepalive == 0) return never;
    if (now < next_look_) return next_look_;
    const bool turn = now >= next_turn_;
    base::Nanoseconds live = 0;
    auto next = never;
    next_look_ = never;  // what is sent meanwhile sets it
    links_.for_each([&](Link& link) {
        if (link.state != LinkState::live || !rails_[link.rail].traits().keepalive) return;
        ++live;
        if (link.silence.settled() && turn) {
            keep_alive(link, now);
            if (!link.silence.settled()) next = std::min(next, now + keepalive_answered);
            return;
        }
        if (!link.silence.settled()) next = std::min(next, now + look_at(link, now));
    });
    if (turn) {
        turn_ = std::max(options_.keepalive, live * keepalive_gap);
        next_turn_ = live == 0 ? never : now + turn_;
    }
    return next_look_ = std::min({next_look_, next, next_turn_});
}

/// A link that nothing was sent over for a while.
void Watcher::keep_alive(Link& link, base::Nanoseconds now) {
    const auto& talk = *peers_[link.peer].talk;
    if (peers_[link.peer].left) return;
    if (link.queued_bytes > 0) {  // what waits there will tell
        unsettle(link, now);
        return;
    }
    const auto pulse = rails_[link.rail].rail->pulse(link.id);
    if (!pulse.known && gone_unheard(link, now)) return;
    const auto received = pulse.known ? pulse.received : static_cast<std::uint64_t>(link.said_at);
    // Where the network tells nothing the other side judges by what comes, and has turns of its own.
    const bool may_rest = pulse.known || Silence::longest_rest * turn_ <= passed_over_longest / 2;
    if (!link.silence.wants_keepalive(received, may_rest)) return;
    link.silence.unsettle(now);  // here, as whoever sends over a settled link has it looked at sooner
    host_.enqueue(link, ack_frame(pool_, talk.session), now);
}

/// Returns when to look again.
base::Nanoseconds Watcher::look_at(Link& link, base::Nanoseconds now) {
    using Finding = Silence::Finding;
    const auto pulse = rails_[link.rail].rail->pulse(link.id);
    if (!pulse.known && gone_unheard(link, now)) return never;
    // What was not posted yet, or refused, is not outstanding, but will be: it is no time to stop looking.
    if (!pulse.outstanding && !link.outbox.empty()) return Silence::period;
    const auto finding = link.silence.look(pulse, limits_of(link, now), now);
    const bool lost = finding == Finding::lost || (finding == Finding::doubtful && heard_elsewhere(link, now));
    if (lost) {
        const auto silent = static_cast<double>(link.silence.silent()) / static_cast<double>(base::second);
        host_.break_off(link, fmt::format("nothing acknowledged for {:.3f} s", silent), now);
        return never;
    }
    if (finding == Finding::overdue) ask(link, now);
    if (finding == Finding::settled) return never;
    return link.silence.silent() > 0 ? Silence::short_period : Silence::period;
}

Silence::Limits Watcher::limits_of(const Link& link, base::Nanoseconds now) const noexcept {
    const auto& cost = peers_[link.peer].talk->costs[link.place];
    // The model may be a guess: what messages took counts, too.
    const auto round_trip = 2 * std::max(cost.latency, link.echo.latency(now)) / sched::ticks_per_ns;
    const auto unanswered = link.underway.unacknowledged() + link.gets * largest_get_;
    const auto predicted = round_trip + sched::times(unanswered, cost.per_byte) / sched::ticks_per_ns;
    Silence::Limits limits;
    limits.overdue += round_trip;
    limits.doubtful += 5 * predicted;
    // Counted from the keepalive on, before which an idle link may have been dead already.
    limits.lost = std::max(options_.silence - std::min(options_.keepalive, options_.silence / 2), limits.doubtful);
    return limits;
}

/// Sends something more over a link that is overdue, which makes its network ask what became of the first, and over those of
/// its peer that are idle: whether the peer is heard there says more than silence.
void Watcher::ask(const Link& overdue, base::Nanoseconds now) {
    const auto& talk = *peers_[overdue.peer].talk;
    for (const auto slot : talk.links) {
        Link& other = links_.at(slot);
        const bool idle = other.silence.settled() && rails_[other.rail].traits().keepalive;
        if ((&other != &overdue && !idle) || !other.outbox.empty()) continue;
        host_.enqueue(other, ack_frame(pool_, talk.session), now);
        if (idle) other.silence.expect(rails_[other.rail].rail->pulse(other.id));
    }
}

/// A link whose network tells nothing: what is heard of the process at its other end must do. True if it is lost.
bool Watcher::gone_unheard(Link& link, base::Nanoseconds now) {
    const auto recent = recent_turns * turn_;
    const auto elsewhere = std::ranges::any_of(peers_[link.peer].talk->links, [&](std::uint32_t slot) {
        return slot != link.slot && now - links_.at(slot).said_at <= recent;
    });
    link.unheard.look(link.said_at, elsewhere, recent, now);
    const bool passed_over = link.unheard.passed_over() >= std::max(passed_over_longest, 6 * turn_);
    if (!passed_over && link.unheard.silent() < options_.unheard) return false;
    const auto silent = static_cast<double>(link.unheard.silent()) / static_cast<double>(base::second);
    host_.break_off(
        link, fmt::format("nothing came for {:.1f} s{}", silent, passed_over ? ", but over other links" : ""), now);
    return true;
}

/// Whether the peer's host shows over another link that it is there.
bool Watcher::heard_elsewhere(const Link& silent, base::Nanoseconds now) const noexcept {
    const auto& links = peers_[silent.peer].talk->links;
    return std::ranges::any_of(links, [&](std::uint32_t slot) {
        const Link& other = links_.at(slot);
        return &other != &silent && std::max(other.silence.heard_at(), other.said_at) > now - silent.silence.silent();
    });
}

}  // namespace railmux::rails

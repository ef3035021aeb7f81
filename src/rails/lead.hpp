// Leads: where frames to a peer go without a choice for each, for a moment after one has had one.
//
// Threads: one thread at a time.
// Lifetime: values; of one peer and its links; new ones for others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/clock.hpp"
#include "base/in_line.hpp"
#include "rails/frame.hpp"
#include "rails/link.hpp"
#include "rails/session.hpp"
#include "sched/policy.hpp"
#include "sched/ticks.hpp"

namespace railmux::rails {

/// Frames of at most `most` bytes take the link, as long as no more than `slack` has been handed over (Policy::lead,
/// Leads::handed). `idle_slack`: the same when nothing has; less than nothing if there was something on the rails when it was
/// found.
struct Lead {
    Link* link = nullptr;
    std::uint64_t most = 0;
    base::Nanoseconds until = 0;
    sched::Ticks slack = 0;
    sched::Ticks idle_slack = -1;
    sched::Ticks gap = 0;
    sched::Ticks per_byte = 0;

    static constexpr auto unlimited = std::numeric_limits<sched::Ticks>::max();  // loads do not matter

    /// Of the only link there is to choose.
    [[nodiscard]] static Lead only(Link& link, base::Nanoseconds until) noexcept {
        const auto most = std::max<std::uint64_t>(sched::light_bytes, link.at_once_max);
        return {.link = &link, .most = most, .until = until, .slack = unlimited, .idle_slack = unlimited};
    }
    /// How long the rail takes a frame of so many bytes.
    [[nodiscard]] RAILMUX_IN_LINE sched::Ticks time_of(std::uint64_t bytes) const noexcept {
        return gap + static_cast<sched::Ticks>(bytes) * per_byte;
    }
    /// Something heavy has been handed to a rail: what was decided by loads needs another choice.
    void loaded() noexcept {
        if (slack != unlimited) until = 0;
    }
};

/// Those of a peer: light frames follow one (that of heavy ones where bursts fare best over one rail, sched::place_along), and
/// of what is no choice all that the rail takes at once; heavy ones another, if this process has handed nothing else that is
/// heavy to a rail that leads there (Ledger::leads_alone), and the peer's last frame came over the same link as when it was
/// found. When nothing of ours is on its way to the peer the rails are as idle as
/// they were: of who sends one and awaits the answer, or a burst, each finds them as the first did. Otherwise what it takes to
/// choose, half a microsecond, stands between each message and its answer, and between the frames of a burst.
struct Leads {
    Lead light;
    sched::Ticks handed = 0;            // by the time it takes: since nothing was on its way, or from before
    std::uint32_t last_link = no_link;  // that of heavy ones
    Lead heavy;

    /// Whether a frame of so many bytes goes where the light ones went of late.
    [[nodiscard]] RAILMUX_IN_LINE bool takes(std::uint32_t size, const Session& session,
                                             base::Nanoseconds now) noexcept {
        return takes(light, size, session, now);
    }
    /// Whether it goes where the heavy ones did.
    [[nodiscard]] bool takes_heavy(const Frame& frame, const Session& session, std::uint32_t came_by,
                                   base::Nanoseconds now) noexcept {
        const auto bytes = frame.wire_bytes();
        if (came_by != last_link || frame.piece_count > 0 || bytes <= sched::light_bytes) return false;
        if (session.all_heard()) begin_idle();
        return takes(heavy, bytes, session, now);
    }
    /// One of them is to be found anew, for a frame that had a choice.
    void rebase() noexcept {
        for (auto* lead : {&light, &heavy}) {
            if (lead->slack != Lead::unlimited) lead->slack -= handed;
        }
        handed = 0;
    }

private:
    [[nodiscard]] RAILMUX_IN_LINE bool takes(const Lead& lead, std::uint64_t size, const Session& session,
                                             base::Nanoseconds now) noexcept {
        if (now >= lead.until || size > lead.most) [[unlikely]]
            return false;
        if (handed > lead.slack && !(session.all_heard() && goes_on(lead))) [[unlikely]]
            return false;
        handed += lead.time_of(size);
        return true;
    }
    [[nodiscard, gnu::noinline]] bool goes_on(const Lead& lead) noexcept {
        begin_idle();
        return lead.idle_slack > 0;
    }
    /// Nothing of ours is on its way.
    void begin_idle() noexcept {
        rebase();
        if (light.idle_slack > 0) light.slack = light.idle_slack;
        if (heavy.idle_slack > 0) heavy.slack = heavy.idle_slack;
    }
};

}  // namespace railmux::rails

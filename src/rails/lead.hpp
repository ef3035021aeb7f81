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

/// All frames of at most `most` bytes take the link, as long as no more than `slack` has been handed to its rail
/// (Policy::lead): light ones, and of what is no choice all that the rail takes at once. If next to nothing was on any rail
/// when it was found, `idle_slack` is what that left, and is there again when nothing of ours is on its way to the peer: of
/// who sends one and awaits the answer, each finds the rails as the first did.
struct Lead {
    Link* link = nullptr;
    std::uint32_t most = 0;
    base::Nanoseconds until = 0;
    sched::Ticks slack = 0;
    sched::Ticks idle_slack = 0;
    sched::Ticks gap = 0;
    sched::Ticks per_byte = 0;

    /// Of the only link there is to choose.
    [[nodiscard]] static Lead only(Link& link, base::Nanoseconds until) noexcept {
        const auto most = std::max<std::uint64_t>(sched::light_bytes, link.at_once_max);
        return {.link = &link, .most = static_cast<std::uint32_t>(most), .until = until, .slack = unlimited};
    }
    /// Whether a frame of so many bytes goes where the others went of late.
    [[nodiscard]] RAILMUX_IN_LINE bool takes(std::uint32_t size, const Session& session,
                                             base::Nanoseconds now) noexcept {
        if (now >= until || size > most) [[unlikely]]
            return false;
        const auto taken = gap + static_cast<sched::Ticks>(size) * per_byte;
        slack -= taken;
        if (slack < 0 && session.all_heard()) [[unlikely]]
            slack = idle_slack - taken;
        return slack >= 0;
    }
    /// Something heavy has been handed to a rail: what was decided by loads needs another choice.
    void loaded() noexcept {
        if (slack != unlimited) until = 0;
    }
    static constexpr auto unlimited = std::numeric_limits<sched::Ticks>::max();  // loads do not matter
};

/// A heavy frame of at most `most` bytes takes the link, if nothing of ours is on its way to the peer, and this process has
/// handed nothing heavy to a rail that leads there since the last one that went so (Ledger::leads_alone): so it was when the
/// choice fell on the link, with next to nothing on any rail. Otherwise what it takes to choose, half a microsecond, stands
/// between each message and its answer.
struct LoneLead {
    Link* link = nullptr;
    std::uint64_t most = 0;
    base::Nanoseconds until = 0;
    std::uint32_t last_link = no_link;  // over which the last frame had come in

    [[nodiscard]] bool takes(const Frame& frame, const Session& session, std::uint32_t came_by,
                             base::Nanoseconds now) const noexcept {
        const auto bytes = frame.wire_bytes();
        if (now >= until || came_by != last_link || frame.piece_count > 0) return false;
        if (bytes <= sched::light_bytes || bytes > most) return false;
        return session.all_heard();
    }
};

}  // namespace railmux::rails

// What is common to post() of rails whose links take several works at once.
//
// Threads and lifetime: as the rail that calls it.
#pragma once

#include <cstddef>
#include <span>

#include "transports/event_queue.hpp"
#include "transports/link_table.hpp"
#include "transports/transport.hpp"

namespace railmux::transports {

/// Hands each run of works for one link to `take(link, run)`, which returns how many of them it took; the first that is not
/// taken ends it. Works of links that are not up are over: link_lost. Returns how many works are dealt with, as post() does.
template <typename Link, typename Take>
std::size_t post_runs(std::span<const Work> works, LinkTable<Link>& links, EventQueue& events, Take take) {
    std::size_t posted = 0;
    while (posted < works.size()) {
        const auto id = works[posted].link;
        auto end = posted + 1;
        while (end < works.size() && works[end].link == id) ++end;
        Link* link = links.find(id);
        if (link == nullptr || link->phase != decltype(link->phase)::up) {
            for (; posted < end; ++posted) {
                if (!works[posted].quiet) events.done(id, works[posted].cookie, WorkStatus::link_lost);
            }
            continue;
        }
        const auto run = works.subspan(posted, end - posted);
        const auto taken = take(*link, run);
        posted += taken;
        if (taken < run.size()) break;
    }
    return posted;
}

}  // namespace railmux::transports

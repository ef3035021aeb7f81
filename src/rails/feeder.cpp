#include "rails/feeder.hpp"

#include <algorithm>

namespace railmux::rails {

// --- Bulk ------------------------------------------------------------------------------------------------------------

void Feeder::feed(std::uint32_t peer, base::Nanoseconds now) {
    static_cast<void>(plan_.renew(peer, now));
    feed_planned(peer, now);
}

void Feeder::feed_planned(std::uint32_t peer, base::Nanoseconds now) {
    auto& talk = *peers_[peer].talk;
    for (std::size_t i = 0; i < talk.links.size(); ++i) feed_link(links_.at(talk.links[i]), now);
}

void Feeder::feed_all(base::Nanoseconds now) {
    offered_ = false;
    ++next_;
    sched::plan_in_turn(with_bulk_.size(), next_,
                        [&](std::size_t i, bool again) { return plan_.renew(with_bulk_[i], now, again); });
    for (std::size_t n = 0; n < with_bulk_.size(); ++n) {
        feed_planned(with_bulk_[(next_ + n) % with_bulk_.size()], now);
    }
    std::erase_if(with_bulk_, [&](std::uint32_t peer) {
        auto& talk = *peers_[peer].talk;
        bool left = talk.links.empty();
        for (const auto slot : talk.links) left = left || upper_.bulk_left(peer, links_.at(slot).remote_rail) > 0;
        if (left) return false;
        talk.bulk_offered = false;
        plan_.drop(talk);
        return true;
    });
}

void Feeder::piece_gone(Link& link, base::Nanoseconds now) {
    const auto& talk = *peers_[link.peer].talk;
    if (!talk.bulk_offered) return;
    // Others may have run dry meanwhile, with nobody to tell.
    talk.planned == now ? feed_link(link, now) : feed(link.peer, now);
}

void Feeder::link_up(Link& link, base::Nanoseconds now) {
    if (upper_.bulk_left(link.peer, link.remote_rail) > 0) {
        note(link.peer);
        feed(link.peer, now);
    }
    feed_gets(link, now);
}

void Feeder::feed_link(Link& link, base::Nanoseconds now) {
    if (ledger_.any_late()) ledger_.charge_late();  // it went before this
    auto& talk = *peers_[link.peer].talk;
    while (talk.session.open_for_messages()) {
        const auto most = plan_.piece_for(link, largest_, now);
        if (most == 0) return;
        Frame* frame = upper_.next_bulk(link.peer, link.rail, link.remote_rail, most);
        if (frame == nullptr) return;
        host_.number(talk, *frame, now);
        // That the rail was late shows at the end of what it got.
        const bool last =
            plan_.given(link, frame->payload > 0 ? frame->payload : most);  // nothing is put that was denied
        const bool timed = talk.links.size() > 1 && talk.only != link.place;
        const auto asked = timed ? ledger_.ask(link, *frame, now, last) : Ledger::Asked::no;
        ledger_.look(link);
        host_.line_up(link, frame, now);
        ledger_.charge(link, *frame, now);
        if (timed) ledger_.note(link, *frame, asked);
    }
}

// --- Gets ------------------------------------------------------------------------------------------------------------

void Feeder::offer_gets(std::uint32_t peer, base::Nanoseconds now) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    for (std::size_t i = 0; i < talk->links.size(); ++i) feed_gets(links_.at(talk->links[i]), now);
}

void Feeder::feed_gets(Link& link, base::Nanoseconds now) {
    if (!regions_.gets_over(link)) return;
    while (link.gets < BulkPlan::pieces_per_link) {
        Frame* frame = upper_.next_get(link.peer, link.rail, link.remote_rail, largest_get(largest_));
        if (frame == nullptr) return;
        ++link.gets;
        host_.line_up(link, frame, now);
    }
}

void Feeder::end_get(Link& link, Frame& frame, transports::WorkStatus status, base::Nanoseconds now) {
    --link.gets;
    if (status == transports::WorkStatus::ok) {
        peers_[link.peer].traffic[link.rail].received_bytes += frame.payload;
        link.bulk_received += frame.payload;
    }
    upper_.on_got(link.peer, frame, status);
    pool_.give(&frame);
    if (status == transports::WorkStatus::ok && link.state == LinkState::live) feed_gets(link, now);
}

}  // namespace railmux::rails

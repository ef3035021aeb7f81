// RailManager: bulk: links are given their next pieces.
#include "rails/way_down.hpp"

namespace railmux::rails {

// --- Handing over ----------------------------------------------------------------------------------------------------

void RailManager::offer_bulk(std::uint32_t peer) {
    if (peers_[peer].talk == nullptr) return;
    note_bulk_peer(peer);
    // With what is offered for others in the same round, or call: what a rail is given cannot go another way any more.
    bulk_offered_ = heard_awaited_ = true;
    due_ = 0;
}

void RailManager::note_bulk_peer(std::uint32_t peer) {
    if (!std::exchange(peers_[peer].talk->bulk_offered, true)) bulk_peers_.push_back(peer);
}

void RailManager::feed_links(std::uint32_t peer, base::Nanoseconds now) {
    static_cast<void>(plan_.renew(peer, now));
    feed_planned(peer, now);
}

void RailManager::feed_planned(std::uint32_t peer, base::Nanoseconds now) {
    auto& talk = *peers_[peer].talk;
    for (std::size_t i = 0; i < talk.links.size(); ++i) feed_bulk(links_.at(talk.links[i]), now);
}

/// All that have bulk, by one plan, because they share the rails.
void RailManager::feed_all(base::Nanoseconds now) {
    bulk_offered_ = false;
    ++next_fed_;
    sched::plan_in_turn(bulk_peers_.size(), next_fed_,
                        [&](std::size_t i, bool again) { return plan_.renew(bulk_peers_[i], now, again); });
    for (std::size_t n = 0; n < bulk_peers_.size(); ++n) {
        feed_planned(bulk_peers_[(next_fed_ + n) % bulk_peers_.size()], now);
    }
    std::erase_if(bulk_peers_, [&](std::uint32_t peer) {
        auto& talk = *peers_[peer].talk;
        bool left = talk.links.empty();
        for (const auto slot : talk.links) left = left || upper_.bulk_left(peer, links_.at(slot).remote_rail) > 0;
        if (left) return false;
        talk.bulk_offered = false;
        plan_.drop(talk);
        return true;
    });
}

void RailManager::feed_bulk(Link& link, base::Nanoseconds now) {
    auto& talk = *peers_[link.peer].talk;
    while (talk.session.open_for_messages()) {
        const auto most = plan_.piece_for(link, options_.fragment, now);
        if (most == 0) return;
        Frame* frame = upper_.next_bulk(link.peer, link.rail, link.remote_rail, most);
        if (frame == nullptr) return;
        number(talk, *frame, now);
        // That the rail was late shows at the end of what it got.
        const bool last =
            plan_.given(link, frame->payload > 0 ? frame->payload : most);  // nothing is put that was denied
        if (talk.links.size() > 1 && talk.only != link.place) ledger_.time(link, *frame, now, last);
        ledger_.look(link);
        enqueue(link, frame, now);
    }
}

// --- Getting ---------------------------------------------------------------------------------------------------------

void RailManager::offer_gets(std::uint32_t peer, base::Nanoseconds now) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    for (std::size_t i = 0; i < talk->links.size(); ++i) feed_gets(links_.at(talk->links[i]), now);
}

/// Whichever link has room takes the next piece, so all that get are over at about the same time.
void RailManager::feed_gets(Link& link, base::Nanoseconds now) {
    if (!regions_.gets_over(link)) return;
    while (link.gets < BulkPlan::pieces_per_link) {
        Frame* frame = upper_.next_get(link.peer, link.rail, link.remote_rail, options_.fragment);
        if (frame == nullptr) return;
        ++link.gets;
        line_up(link, frame, now);
    }
}

void RailManager::end_get(Link& link, Frame& frame, transports::WorkStatus status) {
    --link.gets;
    if (status == transports::WorkStatus::ok) peers_[link.peer].traffic[link.rail].received_bytes += frame.payload;
    upper_.on_got(link.peer, frame, status);
    pool_.give(&frame);
    if (status == transports::WorkStatus::ok && link.state == LinkState::live) feed_gets(link, now_);
}

}  // namespace railmux::rails

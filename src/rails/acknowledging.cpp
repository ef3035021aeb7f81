// RailManager: acknowledging what has come, telling how much of it the application has taken, and hearing the same of what we
// have sent.
#include <algorithm>
#include <utility>

#include "rails/rail_manager.hpp"

namespace railmux::rails {

void RailManager::run_acks(base::Nanoseconds now) {
    const auto talk_of = [&](std::uint32_t peer) { return peers_[peer].talk.get(); };
    const auto owed = [&](std::uint32_t peer) {
        auto* talk = talk_of(peer);
        return talk == nullptr ? nullptr : &talk->owed;
    };
    schedule(owed_acks_.run(now, owed, [&](std::uint32_t peer) { send_ack(*talk_of(peer), now); }));
}

/// Tells when frame `seq` came, now, over this link.
void RailManager::tell_time(Link& link, Conversation& talk, std::uint32_t seq, base::Nanoseconds now) {
    if (link.asks_too_much()) return;
    link.over_rail->want_arrivals(link.id);  // there will be more of them
    const ArrivalTimes times{.timed = link.arrival(now), .before = link.came.when, .before_seq = link.came.seq};
    outboxes_.enqueue(link, time_frame(pool_, talk.session, seq, times, ledger_.next_rate_to_tell(talk)), now);
}

void RailManager::send_ack(Conversation& talk, base::Nanoseconds now) {
    if (talk.links.empty()) return;  // it stays owed until there is a link again
    Link& link = ack_route_.next(talk, now);
    if (link.refused) outboxes_.drop_waiting_ack(link);
    outboxes_.enqueue(link, ack_frame(pool_, talk.session), now);
    talk.owed.told_all();
}

// --- Hearing ---------------------------------------------------------------------------------------------------------

/// Something waits for what acknowledgements release, or it is much. Traces tell when each came.
void RailManager::want_heard(const Link& link, const Conversation& talk, const FrameHeader& header,
                             base::Nanoseconds now) {
    if (talk.heavy_outstanding()) due_ = 0;
    if (talk.hungry || !talk.waiting.empty() || feeder_.any()) heard_.await();
    if (tracer_ != nullptr) tracer_->heard(link, header, talk, now);  // the last: elsewhere nothing is saved for it
}

void RailManager::await(std::uint32_t peer) noexcept {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    talk->hungry = talk->acks_wanted = true;
    due_ = 0;  // perhaps what has been heard already will do
}

bool RailManager::take_heard() {
    base::Nanoseconds at = 0;
    base::Nanoseconds unseen = 0;
    const bool any = heard_.take(links_, [&](Link& link, Link::Heard& heard) {
        at = heard.at;
        unseen = heard.at - heard.taken;
        if (heard.header.type < FrameType::eager) heard.header.aux = 0;  // it is no payload
        if (!take_acks(link, heard.header, {}, heard.credit, heard.at)) {
            break_off(link, "it acknowledged what was never sent", heard.at);
        }
    });
    if (any) ledger_.settle(at, unseen);
    return any;
}

void RailManager::on_ack(Link& link, Conversation& talk, const FrameHeader& header, std::span<const std::byte> body,
                         base::Nanoseconds now) {
    std::optional<Link::Timed> timed;
    if ((header.flags & frame_flag::timed) != 0) {
        const auto times = ArrivalTimes::read(body);
        const auto rate = ShownRate::read(body.subspan(std::min(body.size(), ArrivalTimes::size)));
        if (!times || !rate) return break_off(link, "it sent a malformed acknowledgement", now);
        ledger_.learn_from_before(link, header, *times, now);
        timed = ledger_.timed(link, header, times->timed, now);
        ledger_.heard_rate(talk, *rate);
        body = body.subspan(ArrivalTimes::size + ShownRate::size);
    }
    if (talk.session.hear(header.ack) == Session::Hearing::news) ledger_.heard(link, talk, header, now);
    const bool credit = talk.take_credit(header);
    if (!take_acks(link, header, body, credit, now)) {
        return break_off(link, "it acknowledged what was never sent", now);
    }
    if (feeder_.offered()) heard_.await();
    if (timed) ledger_.learn_from_timed(link, *timed, now);
}

bool RailManager::take_acks(const Link& link, const FrameHeader& header, std::span<const std::byte> sack, bool credit,
                            base::Nanoseconds now) {
    const auto peer = link.peer;
    auto& talk = *peers_[peer].talk;
    if (sack.size() > Session::max_sack_bytes) return false;
    talk.behind_there = (header.flags & frame_flag::behind) != 0;
    talk.spreading.heard(header);
    bool moved = credit;
    const auto take = [&](const auto& note) {
        Ledger::Taking taking(ledger_, link, header, now);
        const auto each = [&](Frame& frame) {
            moved = true;
            note(frame);
            taking(frame);
            frame.acked = true;
            outboxes_.release_if_free(peer, frame);
        };
        if (!talk.session.acknowledged(header.ack, {}, each)) return false;
        // The bits of an acknowledgement count from the number it was made with, which may be older than the one stamped on.
        return sack.empty() || talk.session.acknowledged(header.aux, sack, each);
    };
    const auto record = [&](const Frame& frame) {
        if (frame.link != no_link) tracer_->acknowledged(link, header, frame, talk, now);
    };
    if (!(tracer_ == nullptr ? take([](const Frame&) {}) : take(record))) return false;
    if (!moved) return true;
    BulkPlan::acknowledged(talk, now);
    if (!talk.groups.empty()) groups_.review(talk, now);
    if (!talk.waiting.empty()) enter_waiting(peer, talk, now);
    if (feeder_.any()) {
        feeder_.room_made(now);
        schedule(plan_.look_again());
    }
    talk.hungry = false;
    talk.acks_wanted = talk.heavy_outstanding() || !talk.waiting.empty() || (tracer_ != nullptr && still_traced());
    upper_.on_sendable(peer);
    return true;
}

/// A tracer that has told all that it was to tell goes here, where it is not called.
bool RailManager::still_traced() noexcept {
    if (!tracer_->over()) return true;
    ledger_.tell(nullptr);
    tracer_.reset();
    return false;
}

}  // namespace railmux::rails

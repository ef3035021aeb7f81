// RailManager, the way down: from send() to a link, where way_down.hpp does not see to it.
#include "rails/rail_manager.hpp"
#include "rails/way_down.hpp"

namespace railmux::rails {

namespace {

constexpr auto none = sched::Contest::none;

/// Whether a light frame meets nothing on the rails, and belongs to no burst of heavy ones: then it may show how far one is.
bool goes_alone(const Conversation& talk, std::uint64_t bytes) noexcept {
    return talk.links.size() > 1 && talk.rails_idle() &&
           sched::place_along(talk.candidates, bytes) == talk.candidates.size();
}

}  // namespace

void RailManager::send(std::uint32_t peer, Frame* frame, base::Nanoseconds now) {
    auto& talk = talk_to(peer);
    if (talk.session.open() && talk.waiting.empty()) {
        enter(peer, talk, frame, now);
    } else {
        talk.waiting.push(frame);
        talk.acks_wanted = true;
    }
}

/// The window has room again.
void RailManager::enter_waiting(std::uint32_t peer, Conversation& talk, base::Nanoseconds now) {
    while (!talk.waiting.empty() && talk.session.open()) enter(peer, talk, talk.waiting.pop(), now);
}

void RailManager::enter(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    if (frame->piece_count > 0 || !talk.leads.takes(frame->bytes, talk.session, now)) {
        return enter_by_choice(peer, talk, frame, now);
    }
    number(talk, *frame, now);
    hand_over(*talk.leads.light.link, talk, frame, now);
}

/// A frame that follows none of the light ones. Where there is a choice what there is to choose from is to be known, and what
/// the peer acknowledges to have been numbered, before this frame is.
void RailManager::enter_by_choice(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    if (follow_heavy(peer, talk, frame, now)) return;
    const bool chosen = talk.links.empty() || only_link(talk, now) != nullptr || favoured(talk, *frame, now) != none;
    if (frame->piece_count > 0 || !chosen) static_cast<void>(catch_up());
    number(talk, *frame, now);
    route(peer, talk, frame, now);
}

/// Whether a heavy frame follows those before it; then it is gone. The first of what may be a burst goes as light ones do; what
/// the others, which go behind it, show of the rail is what choices go by.
bool RailManager::follow_heavy(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    const bool first = talk.session.all_heard();
    if (!ledger_.leads_alone(peer) || talk.heavy_contest.favoured() != none ||
        !talk.leads.takes_heavy(*frame, talk.session, talk.last_link, now))
        return false;
    Link& link = *talk.leads.heavy.link;
    const bool timed = !first && ledger_.due(link, *frame, now);
    if (timed) {
        ledger_.charge_late();
        ledger_.look(link);
    }
    number(talk, *frame, now);
    ledger_.set_leads_aside();
    timed ? hand_over_timed(link, talk, frame, now) : hand_over(link, talk, frame, now);
    ledger_.leads_by_idle(peer);
    note_choice(talk, *frame, link.place, now);
    return true;
}

/// Numbers it, and remembers whether its acknowledgement may be taken late: nobody is told of light ones, and they hold little.
void RailManager::number(Conversation& talk, Frame& frame, base::Nanoseconds now) {
    talk.session.enter(frame, talk.stamp(keeping_up_.behind(), now));
    if (frame.token == 0 && frame.wire_bytes() <= sched::light_bytes) return;
    talk.heavy = frame.seq + 1;
    if (frame.type == FrameType::inlined) talk.unasked = talk.heavy;
    if (frame.wire_bytes() > sched::heavy_bytes) talk.large = talk.heavy;
    talk.acks_wanted = true;
}

/// To a link that is no choice.
void RailManager::hand_over(Link& link, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    if (frame->token != 0 || !outboxes_.post_at_once(link, talk, *frame, now)) outboxes_.line_up(link, frame, now);
    put_off(link, talk, *frame, now);
    if (frame->wire_bytes() <= sched::light_bytes) return;
    due_ = 0;
    if (frame->queued && talk.has_choice()) Ledger::await_posting(link);
}

/// What the link carries shows what it takes.
void RailManager::hand_over_timed(Link& link, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    const auto asked = ledger_.ask(link, *frame, now);
    const bool plain = frame->piece_count == 0 && frame->token == 0;
    if (plain && outboxes_.post_at_once(link, talk, *frame, now)) {
        ledger_.charge(link, *frame, now);
    } else {
        outboxes_.enqueue(link, frame, now);
    }
    ledger_.note(link, *frame, asked);
}

/// What becomes of frames that go so shows whether others should.
void RailManager::note_choice(Conversation& talk, const Frame& frame, std::size_t choice, base::Nanoseconds now) {
    const bool light = frame.wire_bytes() <= sched::light_bytes;
    if (!light && frame.wire_bytes() <= sched::heavy_bytes && policy_.predicts()) {
        talk.spreading.went(frame.wire_bytes(), choice, talk.session, talk.candidates, talk.large, talk.follows, now);
    }
    const bool contested =
        light ? sched::place_along(talk.candidates, frame.wire_bytes()) != choice : !talk.spreading.lone();
    if (talk.candidates[choice].behind && policy_.predicts() && contested) {
        const sched::Contest::Score score{.handed = talk.session.numbered(),
                                          .sent = talk.session.heard(),
                                          .received = talk.session.ack(),
                                          .others = light ? talk.heavy : talk.large};
        auto& contest = light ? talk.light_contest : talk.heavy_contest;
        contest.went(choice, talk.candidates, score, talk.follows, now);
    }
}

/// Where there is nothing to choose: the only link, or the only one that is not spare, for a while after that was found.
Link* RailManager::only_link(const Conversation& talk, base::Nanoseconds now) noexcept {
    if (talk.links.size() == 1) return &links_.at(talk.links.front());
    const bool known = talk.only != Conversation::none && now - talk.refreshed < long_lead_time && !explaining();
    return known ? &links_.at(talk.links[talk.only]) : nullptr;
}

/// Of a heavy frame: where all of them go, whatever there is on the rails, for a while after that was found; none: it needs a
/// choice.
std::size_t RailManager::favoured(const Conversation& talk, const Frame& frame, base::Nanoseconds now) noexcept {
    const auto place = talk.heavy_contest.favoured();
    if (place == none || now - talk.chosen >= long_lead_time || explaining()) return none;
    const auto bytes = frame.wire_bytes();
    const bool one =
        frame.piece_count == 0 && !frame.again && bytes > sched::light_bytes && bytes <= sched::heavy_bytes;
    return one && talk.candidates[place].favoured_heavy ? place : none;
}

void RailManager::route(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    frame->link = no_link;
    if (talk.links.empty()) {
        want(peer, now);  // it goes when a link comes up
        return;
    }
    if (const auto place = favoured(talk, *frame, now); place != none) {
        note_choice(talk, *frame, place, now);
        return hand_over(links_.at(talk.links[place]), talk, frame, now);
    }
    if (frame->piece_count > 0 || only_link(talk, now) == nullptr) ledger_.refresh(talk, now);
    if (Link* only = only_link(talk, now); only != nullptr && frame->piece_count == 0) {
        if (talk.links.size() > 1) talk.leads.light = Lead::only(*only, talk.refreshed + long_lead_time);
        return hand_over(*only, talk, frame, now);
    }
    const bool light = frame->wire_bytes() <= sched::light_bytes;
    std::size_t choice = policy_.choose(talk.candidates, frame->wire_bytes(), now);
    if (!light) talk.chosen = now;
    if (frame->piece_count > 0) {  // the choice must be a rail whose key the receiver gave us
        for (std::size_t i = 0; i < talk.links.size(); ++i) {
            if (frame->target->key_for(links_.at(talk.links[choice]).remote_rail) != nullptr) break;
            choice = (choice + 1) % talk.links.size();
        }
        if (frame->target->key_for(links_.at(talk.links[choice]).remote_rail) == nullptr) return;
    }
    const bool ordinary = frame->piece_count == 0 && !frame->again;
    if (ordinary && light && !explaining() && goes_alone(talk, frame->wire_bytes())) {
        const auto place = ledger_.lone_trial(talk, choice, frame->wire_bytes(), now);
        if (place < talk.links.size()) return hand_over_timed(links_.at(talk.links[place]), talk, frame, now);
    }
    if (ordinary) note_choice(talk, *frame, choice, now);
    hand_over_timed(links_.at(talk.links[choice]), talk, frame, now);
    if (ordinary && !explaining()) lead_finder_.chosen(talk, *frame, choice, now);
}

/// A frame that was numbered, and perhaps sent, some time ago.
void RailManager::route_again(std::uint32_t peer, Conversation& talk, Frame& frame, base::Nanoseconds now) {
    frame.flags &= static_cast<std::uint8_t>(~frame_flag::timed);  // whoever asked has another link
    stamp_flags(frame.data(), frame.flags);
    talk.stamp(keeping_up_.behind(), now).put_on(frame.data());
    route(peer, talk, &frame, now);
}

void RailManager::reroute(std::uint32_t peer, std::uint32_t lost_slot, base::Nanoseconds now) {
    auto& known = peers_[peer];
    static_cast<void>(catch_up());
    bool parked = false;
    if (lost_slot == no_link) settling_.link_up(*known.talk, now);
    known.talk->session.for_each_unacknowledged([&](Frame& frame) {
        if (frame.link != lost_slot || frame.queued || frame.undone > 0 || frame.parked) return;
        ledger_.uncharge(frame, now);
        if (frame.denied && frame.piece_count > 0) frame.drop_put();
        frame.again = frame.again || lost_slot != no_link;
        frame.predicted = 0;
        if (lost_slot != no_link && settling_.park(links_.at(lost_slot), frame)) {
            parked = true;
            return;
        }
        route_again(peer, *known.talk, frame, now);
        if (lost_slot != no_link && frame.link != no_link) ++known.traffic[links_.at(frame.link).rail].resent_frames;
    });
    if (parked) Settling::parked_for(*known.talk, links_.at(lost_slot));
    if (lost_slot != no_link) settling_.ask(*known.talk, now);
}

}  // namespace railmux::rails

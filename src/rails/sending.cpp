// RailManager, the way down: from send() to post(), where way_down.hpp does not see to it.
#include "rails/rail_manager.hpp"

#include <algorithm>
#include <utility>

#include "rails/seal.hpp"
#include "rails/way_down.hpp"

namespace railmux::rails {

using transports::Op;
using transports::Work;

namespace {

constexpr auto none = sched::Contest::none;
// Other rails' costs and loads, and the clocks, change little within that: a few round trips of the fastest networks.
constexpr base::Nanoseconds lead_time = 10 * base::microsecond;
// Where it is not loads that decide, but one of the two ends, or which rails are spare: that is judged less often.
constexpr base::Nanoseconds long_lead_time = 100 * base::microsecond;
// No rail is slower; and what a light frame takes is far from overflow.
constexpr sched::Ticks longest_per_byte = sched::to_ticks(base::second);
// Up to 2.5 Gbit/s (3.2 ns a byte) a network is slow: it is given little at a time, which there costs a core some hundredths.
constexpr sched::Ticks slow_per_byte = sched::to_ticks(base::Nanoseconds{16}) / 5;

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

void RailManager::offer_bulk(std::uint32_t peer) {
    if (peers_[peer].talk == nullptr) return;
    feeder_.offer(peer);
    heard_.await();
    due_ = 0;
}

void RailManager::note_got(std::uint32_t peer, std::uint32_t rail, std::uint64_t bytes) noexcept {
    peers_[peer].traffic[rail].sent_bytes += bytes;
}

/// The window has room again.
void RailManager::enter_waiting(std::uint32_t peer, Conversation& talk, base::Nanoseconds now) {
    while (!talk.waiting.empty() && talk.session.open()) enter(peer, talk, talk.waiting.pop(), now);
}

void RailManager::enter(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    if (frame->piece_count > 0 || !talk.lead.takes(frame->bytes, now)) {
        return enter_by_choice(peer, talk, frame, now);
    }
    number(talk, *frame, now);
    hand_over(*talk.lead.link, talk, frame, now);
}

/// A frame that follows no lead. What there is to choose from is to be known, and what the peer acknowledges to have been
/// numbered, before this frame is.
void RailManager::enter_by_choice(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    const bool chosen = talk.links.empty() || only_link(talk, now) != nullptr || favoured(talk, *frame, now) != none;
    if (frame->piece_count > 0 || !chosen) static_cast<void>(catch_up());
    number(talk, *frame, now);
    route(peer, talk, frame, now);
}

/// Numbers it, and remembers whether its acknowledgement may be taken late: nobody is told of light ones, and they hold little.
void RailManager::number(Conversation& talk, Frame& frame, base::Nanoseconds now) {
    talk.session.enter(frame, stamp_of(talk, now));
    if (frame.token == 0 && frame.wire_bytes() <= sched::light_bytes) return;
    talk.heavy = frame.seq + 1;
    if (frame.wire_bytes() > sched::heavy_bytes) talk.large = talk.heavy;
    talk.acks_wanted = true;
}

/// To a link that is no choice.
void RailManager::hand_over(Link& link, Conversation& talk, Frame* frame, base::Nanoseconds now) {
    if (frame->token != 0 || !post_at_once(link, talk, *frame, now)) line_up(link, frame, now);
    put_off(link, talk, *frame, now);
    if (frame->wire_bytes() > sched::light_bytes) due_ = 0;
}

/// Does what was put off: first what was sent is charged, then what was acknowledged is taken off. True if there was something.
bool RailManager::catch_up() {
    due_ = never;
    if (!heard_.any() && !ledger_.any_late() && !feeder_.offered()) return false;
    ledger_.charge_late();
    const bool taken = take_heard();
    if (!feeder_.offered()) return taken;
    feeder_.feed_all(now_);
    schedule(plan_.look_again());
    return true;
}

/// What becomes of frames that go so shows whether others should, and whether light ones need a choice of their own.
void RailManager::note_choice(Conversation& talk, const Frame& frame, std::size_t choice, base::Nanoseconds now) {
    const bool light = frame.wire_bytes() <= sched::light_bytes;
    if (talk.candidates[choice].behind && policy_.predicts()) {
        const sched::Contest::Score score{.handed = talk.session.numbered(),
                                          .sent = talk.session.heard(),
                                          .received = talk.session.ack(),
                                          .others = light ? talk.heavy : talk.large};
        auto& contest = light ? talk.light_contest : talk.heavy_contest;
        contest.went(choice, talk.candidates, score, talk.follows, now);
    }
    if (light) find_lead(talk, choice, now);
}

/// Whether light frames that follow one for which that was the choice need none of their own. Traces show each decision.
void RailManager::find_lead(Conversation& talk, std::size_t choice, base::Nanoseconds now) noexcept {
    if (now < talk.lead.until || tracer_ != nullptr) return;
    const auto& cost = talk.candidates[choice].cost;
    talk.lead = {.link = &links_.at(talk.links[choice]),
                 .most = sched::light_bytes,
                 .until = now + (talk.candidates[choice].behind ? long_lead_time : lead_time),
                 .slack = policy_.lead(talk.candidates, choice, sched::light_bytes, now),
                 .gap = talk.candidates[choice].stream ? 0 : cost.gap,
                 .per_byte = std::min(cost.per_byte, longest_per_byte)};
}

/// Where there is nothing to choose: the only link, or the only one that is not spare, for a while after that was found. Traces
/// show each decision between several.
Link* RailManager::only_link(const Conversation& talk, base::Nanoseconds now) noexcept {
    if (talk.links.size() == 1) return &links_.at(talk.links.front());
    const bool known = talk.only != Conversation::none && now - talk.refreshed < long_lead_time && tracer_ == nullptr;
    return known ? &links_.at(talk.links[talk.only]) : nullptr;
}

/// Of a heavy frame: where all of them go, whatever there is on the rails, for a while after that was found; none: it needs a
/// choice. Traces show each decision.
std::size_t RailManager::favoured(const Conversation& talk, const Frame& frame, base::Nanoseconds now) noexcept {
    const auto place = talk.heavy_contest.favoured();
    if (place == none || now - talk.chosen >= long_lead_time || tracer_ != nullptr) return none;
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
        if (talk.links.size() > 1) talk.lead = Conversation::Lead::only(*only, talk.refreshed + long_lead_time);
        return hand_over(*only, talk, frame, now);
    }
    std::size_t choice = policy_.choose(talk.candidates, frame->wire_bytes(), now);
    if (frame->wire_bytes() > sched::light_bytes) talk.chosen = now;
    if (frame->piece_count > 0) {  // the choice must be a rail whose key the receiver gave us
        for (std::size_t i = 0; i < talk.links.size(); ++i) {
            if (frame->target->key_for(links_.at(talk.links[choice]).remote_rail) != nullptr) break;
            choice = (choice + 1) % talk.links.size();
        }
        if (frame->target->key_for(links_.at(talk.links[choice]).remote_rail) == nullptr) return;
    }
    if (frame->piece_count == 0 && !frame->again) note_choice(talk, *frame, choice, now);
    Link& chosen = links_.at(talk.links[choice]);
    ledger_.time(chosen, *frame, now);
    const bool plain = frame->piece_count == 0 && frame->token == 0;
    if (!plain || !post_at_once(chosen, talk, *frame, now)) return enqueue(chosen, frame, now);
    ledger_.charge(chosen, *frame, now);
}

/// A frame that was numbered, and perhaps sent, some time ago.
void RailManager::route_again(std::uint32_t peer, Conversation& talk, Frame& frame, base::Nanoseconds now) {
    frame.flags &= static_cast<std::uint8_t>(~frame_flag::timed);  // whoever asked has another link
    stamp_flags(frame.data(), frame.flags);
    stamp_of(talk, now).put_on(frame.data());
    route(peer, talk, &frame, now);
}

/// Charges the frame and puts it into the link's outbox; the link's candidate is fresh.
void RailManager::enqueue(Link& link, Frame* frame, base::Nanoseconds now) {
    line_up(link, frame, now);
    if (!frame->acked) ledger_.charge(link, *frame, now);
}

/// Something is sent over a link that nobody looks at now.
void RailManager::unsettle(Link& link, base::Nanoseconds now) { schedule(watcher_.unsettle(link, now)); }

void RailManager::line_up(Link& link, Frame* frame, base::Nanoseconds now) {
    if (link.silence.settled()) [[unlikely]]
        unsettle(link, now);
    frame->link = link.slot;
    frame->rail = static_cast<std::uint8_t>(link.rail);
    frame->queued = true;
    frame->posted = 0;
    frame->summed = false;
    frame->sent = now;
    if (frame->gets) {  // costs the way to the peer next to nothing
        link.outbox.push(frame);
        mark_dirty(link);
        return;
    }
    link.queued_bytes += frame->wire_bytes();
    if (is_answer(frame->type, frame->flags)) link.queued_answers += frame->bytes;
    if (frame->piece_count > 0) {
        frame->for_rail(link.rail);
        ++link.bulk;
    }
    link.outbox.push(frame);
    mark_dirty(link);
}

void RailManager::post_now(Link& link, Frame* frame) {
    enqueue(link, frame, now_);
    if (!post_outbox(link)) return;
    std::erase(dirty_, link.slot);
    link.dirty = false;
}

void RailManager::mark_dirty(Link& link) {
    if (link.dirty) return;
    link.dirty = true;
    dirty_.push_back(link.slot);
}

void RailManager::catch_up_and_post() {
    if (catch_up()) post_dirty();
}

void RailManager::post_dirty() {
    std::erase_if(dirty_, [&](std::uint32_t slot) {
        Link& link = links_.at(slot);
        link.dirty = link.state == LinkState::live && !post_outbox(link);
        return !link.dirty;  // what was refused is offered again after the next poll
    });
}

bool RailManager::post_outbox(Link& link) {
    auto& talk = *peers_[link.peer].talk;
    auto& rail = *rails_[link.rail].rail;
    const auto stamp = stamp_of(talk, now_);
    const bool slow = ledger_.pace(link.rail).per_byte() > slow_per_byte;
    while (!link.outbox.empty() && !link.over) {
        std::size_t count = 0;
        std::size_t told = works_.size();            // the first work that carries an acknowledgement
        const auto most = link.refused ? 2 : batch;  // try the door before lining up a crowd
        for (Frame* frame = link.outbox.front(); frame != nullptr && count + 2 <= most; frame = frame->next) {
            const auto cookie = reinterpret_cast<std::uint64_t>(frame);
            if (frame->piece_count > 0 && frame->posted == 0) {
                if (frame->denied) drop_put(link, *frame);
                if (frame->piece_count > 0) {
                    works_[count++] = {.op = frame->gets ? Op::get : Op::put,
                                       .slow = slow,
                                       .link = link.id,
                                       .segments = frame->put(),
                                       .remote = *frame->target->key_for(link.remote_rail),
                                       .offset = frame->put_offset,
                                       .cookie = cookie};
                }
                if (frame->gets) continue;
            }
            if (frame->type != FrameType::proof) {
                stamp.put_on(frame->data());
                told = std::min(told, count);
            }
            auto& segment = segments_[count];
            segment = {frame->data(), frame->bytes, 0};
            if (link.checksum) [[unlikely]] {
                seal(*frame);
                segment.size += Seal::size;
            }
            auto& work = works_[count++];  // what else it has a send does not look at
            work.op = Op::send;
            work.slow = slow;
            // Whoever is to be told that it is released may not be told from within a post.
            work.quiet = segment.size <= link.quiet_max && frame->piece_count == 0 && frame->token == 0;
            work.link = link.id;
            work.segments = {&segment, 1};
            work.cookie = cookie;
        }
        // What processors move is theirs while they hand it over, whatever others want of them.
        const bool timed = link.bulk > 0 && !rails_[link.rail].traits().by_processors;
        const auto begun = timed ? options_.clock() : 0;
        const auto taken = rail.post({works_.data(), count});
        if (timed) ledger_.handing(link.rail, options_.clock() - begun);
        account_posted(link, taken);
        if (taken > told) talk.owed.told();
        link.refused = taken < count;
        if (link.refused) return false;
    }
    return true;
}

void RailManager::drop_put(Link& link, Frame& frame) {
    const bool charged = frame.charged;
    ledger_.uncharge(frame, now_);
    link.queued_bytes -= frame.wire_bytes();
    --link.bulk;
    frame.drop_put();
    link.queued_bytes += frame.wire_bytes();
    if (charged) ledger_.charge(link, frame, now_);
}

/// The rail has taken so many of works_.
void RailManager::account_posted(Link& link, std::size_t taken) {
    auto& traffic = peers_[link.peer].traffic[link.rail];
    for (const auto& work : std::span(works_).first(taken)) {
        Frame* frame = link.outbox.front();
        ++frame->posted;
        if (!work.quiet) ++frame->undone;
        if (frame->posted < frame->works()) continue;
        link.outbox.pop();
        frame->queued = false;
        if (frame->gets) continue;
        const bool of_application = frame->type >= FrameType::eager;
        ++traffic.sent_frames;
        if (of_application) traffic.sent_bytes += frame->payload;
        if (work.quiet) {
            sent_off(link, *frame);
        } else if (of_application && (frame->piece_count > 0 || frame->type == FrameType::inlined) &&
                   rails_[link.rail].traits().copies_puts) {
            traffic.copied_bytes += frame->type == FrameType::inlined ? frame->payload : frame->unregistered_bytes();
        }
    }
}

void RailManager::on_done(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now) {
    Link* link = links_.find(rail, event.link);
    auto& frame = *reinterpret_cast<Frame*>(event.cookie);  // NOLINT: a cookie is what post_outbox made of a frame
    --frame.undone;
    if (link == nullptr) return;
    if (frame.gets) return feeder_.end_get(*link, frame, event.status, now_);
    if (event.status == transports::WorkStatus::access_denied) deny_puts(link->peer, frame);
    if (frame.undone > 0 || frame.queued) return;
    const bool bulk = frame.piece_count > 0;
    if (bulk) --link->bulk;
    sent_off(*link, frame);
    if (bulk && link->state == LinkState::live) feeder_.piece_gone(*link, now);
}

/// The rail no longer needs the frame.
void RailManager::sent_off(Link& link, Frame& frame) {
    link.queued_bytes -= frame.wire_bytes();
    if (is_answer(frame.type, frame.flags)) link.queued_answers -= frame.bytes;
    if (frame.type < FrameType::eager && frame.piece_count > 0) Assessor::put_done(link);
    if (frame.type == FrameType::closing && link.state == LinkState::live) late_links_.push_back(link.slot);
    release_if_free(link.peer, frame);
}

/// The rail says that the peer no longer allows this put. Neither it nor others of its transfer are tried again: on fabrics
/// where such a put ends its link each would cost another one.
void RailManager::deny_puts(std::uint32_t peer, Frame& frame) {
    const auto token = frame.token;
    if (frame.piece_count == 0 || frame.acked) return;
    const auto deny = [&](Frame& other) { other.denied = other.denied || other.token == token; };
    if (auto* talk = peers_[peer].talk.get(); talk != nullptr) talk->session.for_each_unacknowledged(deny);
    upper_.on_put_denied(token);
}

void RailManager::release_if_free(std::uint32_t peer, Frame& frame) {
    if (!frame.acked || frame.undone > 0 || frame.queued) return;
    if (frame.token != 0) upper_.on_released(peer, frame);
    pool_.give(&frame);
}

void RailManager::empty_outbox(Link& link) {
    while (!link.outbox.empty()) {
        Frame* frame = link.outbox.pop();
        frame->queued = false;
        frame->posted = 0;
        if (frame->gets) {
            feeder_.end_get(link, *frame, transports::WorkStatus::link_lost, now_);
        } else {
            release_if_free(link.peer, *frame);
        }
    }
    link.queued_bytes = link.queued_answers = 0;
    link.bulk = 0;
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

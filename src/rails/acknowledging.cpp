// RailManager: acknowledging what has come, telling how much of it the application has taken, and hearing the same of what we
// have sent.
#include <algorithm>
#include <array>
#include <utility>

#include "rails/rail_manager.hpp"

namespace railmux::rails {

void RailManager::list_ack(std::uint32_t peer, Conversation& talk, base::Nanoseconds due) {
    if (!std::exchange(talk.ack_listed, true)) ack_list_.push_back(peer);
    talk.ack_due = due;
    schedule(due);
}

void RailManager::run_acks(base::Nanoseconds now) {
    std::erase_if(ack_list_, [&](std::uint32_t peer) {
        auto* talk = peers_[peer].talk.get();
        if (talk == nullptr) return true;
        const bool owing = talk->owed > 0 || talk->consumed_here != talk->reported_here;
        if (owing && talk->ack_due > now) {
            schedule(talk->ack_due);
            return false;
        }
        if (owing) send_ack(*talk, now);
        talk->ack_listed = false;
        return true;
    });
}

/// What has arrived. Nobody acknowledges it, and it may be lost or come twice.
Frame* RailManager::ack_frame(const Conversation& talk) {
    std::array<std::byte, Session::max_sack_bytes> sack;
    const auto sack_bytes = talk.session.write_sack(sack);
    Frame* frame = pool_.take(FrameHeader::size + sack_bytes);
    frame->type = FrameType::ack;
    frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + sack_bytes);
    frame->acked = true;  // it is released when it is done
    // A selective acknowledgement counts from the number in its header, so that number may not be stamped anew.
    write_header(frame->data(), {.type = FrameType::ack, .aux = talk.session.ack()});
    std::copy_n(sack.begin(), sack_bytes, frame->data() + FrameHeader::size);
    return frame;
}

/// Of the links of a peer that has any, the one with least to send.
Link& RailManager::least_busy(const Conversation& talk) noexcept {
    auto least = talk.links.front();
    for (const auto slot : talk.links) {
        if (links_.at(slot).queued_bytes < links_.at(least).queued_bytes) least = slot;
    }
    return links_.at(least);
}

void RailManager::send_ack(Conversation& talk, base::Nanoseconds now) {
    if (talk.links.empty()) return;  // it stays owed until there is a link again
    enqueue(least_busy(talk), ack_frame(talk), now);
    talk.owed = 0;
    talk.reported_here = talk.consumed_here;
}

// --- Hearing ---------------------------------------------------------------------------------------------------------

/// What acknowledgements release is put off: what the frame brings is more likely to be waited for. Only if something waits
/// for it, it is done in this look, as whoever gets the frame's message may not look again for long; and in the next one if it
/// was more than some small frames. Of several from one link the newest says all; credit counts at once, because without it
/// messages would take the long way. False: the link is given up.
bool RailManager::hear_ack(Link& link, Conversation& talk, const FrameHeader& header, base::Nanoseconds now) {
    const bool credit = take_credit(talk, header);
    const auto hearing = talk.session.hear(header.ack);
    if (hearing == Session::Hearing::impossible) {
        break_off(link, "it acknowledged what was never sent", now);
        return false;
    }
    const bool news = hearing == Session::Hearing::news;
    if (news) ledger_.heard(link, talk, header, now);
    if (!news && !(credit && talk.hungry)) return true;  // as in a flood from one side
    auto& heard = link.heard;
    if (!heard.listed) heard_.push_back(link.slot);
    heard = {.ack = header.ack,
             .with = header.type >= FrameType::eager ? header.aux : 0,
             .flags = header.flags,
             .held = header.held,
             .at = now,
             .unseen = now - looks_.quiet,
             .credit = credit || heard.credit,
             .listed = true};
    const bool light = talk.heavy - talk.session.acknowledged() - 1 >= Session::window && tracer_ == nullptr;
    due_ = light ? std::min(due_, now + put_off_longest) : 0;
    heard_awaited_ = heard_awaited_ || talk.hungry || !talk.waiting.empty() || !talk.session.open_for_messages() ||
                     !bulk_peers_.empty();
    return true;
}

/// True if the application over there has taken more of what we sent.
bool RailManager::take_credit(Conversation& talk, const FrameHeader& header) noexcept {
    const auto more = header.consumed - talk.consumed_there;
    if (more == 0 || more >= ~std::uint32_t{0} / 2) return false;
    talk.consumed_there = header.consumed;
    return true;
}

bool RailManager::take_heard() {
    heard_awaited_ = false;
    if (heard_.empty()) return false;
    taking_.swap(heard_);
    base::Nanoseconds at = 0;
    base::Nanoseconds unseen = 0;
    for (const auto slot : taking_) {
        Link& link = links_.at(slot);
        const auto heard = std::exchange(link.heard, {});
        if (!heard.listed || link.state != LinkState::live) continue;  // it was that of a link before
        at = heard.at;
        unseen = heard.unseen;
        const FrameHeader header{
            .type = FrameType::eager, .flags = heard.flags, .held = heard.held, .ack = heard.ack, .aux = heard.with};
        if (!take_acks(link, header, {}, heard.credit, heard.at)) {
            break_off(link, "it acknowledged what was never sent", heard.at);
        }
    }
    taking_.clear();
    ledger_.settle(at, unseen);
    return true;
}

bool RailManager::take_acks(const Link& link, const FrameHeader& header, std::span<const std::byte> sack, bool credit,
                            base::Nanoseconds now) {
    const auto peer = link.peer;
    auto& talk = *peers_[peer].talk;
    if (sack.size() > Session::max_sack_bytes) return false;
    talk.behind_there = (header.flags & frame_flag::behind) != 0;
    bool moved = credit;
    const auto release = [&](Frame& frame) {
        moved = true;
        ledger_.acknowledged(frame, link, header, now);
        frame.acked = true;
        release_if_free(peer, frame);
    };
    const auto record = [&](Frame& frame) {
        if (frame.link != no_link) tracer_->acknowledged(link, header, frame, talk, now);
        release(frame);
    };
    const auto take = [&](const auto& each) {
        if (!talk.session.acknowledged(header.ack, {}, each)) return false;
        // The bits of an acknowledgement count from the number it was made with, which may be older than the one stamped on.
        return sack.empty() || talk.session.acknowledged(header.aux, sack, each);
    };
    if (!(tracer_ == nullptr ? take(release) : take(record))) return false;
    if (!moved) return true;
    if (!talk.groups.empty()) review_groups(talk, now);
    while (!talk.waiting.empty() && talk.session.open()) enter(peer, talk, talk.waiting.pop(), now);
    if (!bulk_peers_.empty()) feed_all(now);
    talk.hungry = false;
    upper_.on_sendable(peer);
    return true;
}

}  // namespace railmux::rails

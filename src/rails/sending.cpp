// RailManager: what is seen to when messages are gone, or before rails are given more, and what rails say of what they had.
#include "rails/rail_manager.hpp"

namespace railmux::rails {

void RailManager::offer_bulk(std::uint32_t peer) {
    if (peers_[peer].talk == nullptr) return;
    feeder_.offer(peer);
    heard_.await();
    due_ = 0;
}

void RailManager::note_got(std::uint32_t peer, std::uint32_t rail, std::uint64_t bytes) noexcept {
    peers_[peer].traffic[rail].sent_bytes += bytes;
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

void RailManager::catch_up_and_post() {
    if (catch_up()) outboxes_.post_all(now_);
}

void RailManager::on_done(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now) {
    Link* link = links_.find(rail, event.link);
    auto& frame = *reinterpret_cast<Frame*>(event.cookie);  // NOLINT: a cookie is what the outbox made of a frame
    --frame.undone;
    if (link == nullptr) return;
    if (frame.gets) return feeder_.end_get(*link, frame, event.status, now_);
    if (event.status == transports::WorkStatus::access_denied) deny_puts(link->peer, frame);
    if (frame.undone > 0 || frame.queued) return;
    const bool bulk = frame.piece_count > 0;
    if (bulk) --link->bulk;
    outboxes_.gone(*link, frame);
    if (bulk && link->state == LinkState::live) feeder_.piece_gone(*link, now);
}

void RailManager::control_gone(Link& link, const Frame& frame) {
    if (frame.piece_count > 0) Assessor::put_done(link);
    if (frame.type == FrameType::closing) leaving_.closing_gone(link);
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

}  // namespace railmux::rails

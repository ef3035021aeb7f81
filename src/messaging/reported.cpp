// Engine: what the rails report, and what they ask for.
#include "base/host.hpp"
#include "messaging/engine.hpp"
#include "messaging/way_in.hpp"

namespace railmux::messaging {

bool Engine::on_frame(std::uint32_t peer, const rails::FrameHeader& header, std::span<const std::byte> body) {
    switch (header.type) {
        case rails::FrameType::eager: return receiver_.on_eager(peer, body, now_);
        case rails::FrameType::bundle: return receiver_.on_bundle(peer, body, now_);
        case rails::FrameType::rts: return receiver_.on_rts(peer, body, now_);
        case rails::FrameType::inlined: return receiver_.on_inlined(peer, body);
        case rails::FrameType::cts: return bulk_out_.on_cts(peer, body, now_);
        case rails::FrameType::fin_ack: return bulk_out_.on_fin_ack(peer, body);
        case rails::FrameType::fin:
            if (!bulk_in_.on_fin(peer, header, body)) return false;
            origin_.resume(peer, now_);  // a get that ends makes room for others
            return true;
        case rails::FrameType::put: return target_.on_put(peer, body);
        case rails::FrameType::get: return target_.on_get(peer, body, now_);
        case rails::FrameType::atomic: return target_.on_atomic(peer, body);
        case rails::FrameType::put_request: return target_.on_put_request(peer, body, now_);
        case rails::FrameType::get_request: return target_.on_get_request(peer, body, now_);
        case rails::FrameType::got: return origin_.on_got(peer, body, now_);
        case rails::FrameType::results: return origin_.on_results(peer, body, now_);
        default: return false;
    }
}

void Engine::on_released(std::uint32_t, const rails::Frame& frame) { bulk_out_.released(frame); }

void Engine::on_sendable(std::uint32_t peer) {
    sender_.resume(peer, now_);
    origin_.resume(peer, now_);
    bulk_in_.resume(peer, now_);
}

rails::Frame* Engine::next_bulk(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail, std::uint64_t most) {
    return bulk_out_.next(peer, rail, remote_rail, most);
}

std::uint64_t Engine::bulk_left(std::uint32_t peer, std::uint8_t remote_rail) {
    return bulk_out_.left(peer, remote_rail);
}

bool Engine::busy(std::uint32_t peer) const noexcept {
    const bool own = peer == own_peer_ && receiver_.own_waiting() > 0;
    return own || sender_.busy(peer) || bulk_out_.busy(peer) || origin_.busy(peer);
}

rails::Frame* Engine::next_get(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail, std::uint64_t most) {
    return bulk_in_.next_get(peer, rail, remote_rail, most);
}

void Engine::on_link_lost(std::uint32_t peer, std::uint32_t rail) {
    bulk_in_.resume(peer, now_);
    if (!busy(peer)) return;
    bulk_out_.link_lost(peer, rail);
    if (rails_.connected(peer)) {
        rails_.offer_bulk(peer);
    } else {
        rails_.want(peer, now_);
    }
}

void Engine::on_peer_gone(std::uint32_t peer, ErrorCode code) {
    note_loss(peer, code);
    bulk_out_.peer_gone(peer, code);
    bulk_in_.peer_gone(peer, code);
    sender_.peer_gone(peer, code);
    if (peer != own_peer_) receiver_.peer_gone(peer, code);  // no rail carries messages to oneself
    origin_.peer_gone(peer, code);
    target_.peer_gone(peer);
}

void Engine::on_address_wanted(std::uint32_t peer) {
    if (const auto rank = rails_.peers()[peer].rank; membership_.in_job() && rank < size()) membership_.ask(rank);
}

void Engine::on_address_changed() {
    const auto own = rails_.own_address(base::host_name(), base::process_id());
    rails_.learn(own);
    membership_.moved(own.encode());
    rails_.tell_address(own, now_);
}

}  // namespace railmux::messaging

#include "messaging/sender.hpp"

#include <algorithm>

namespace railmux::messaging {

using rails::Frame;
using rails::FrameHeader;
using rails::FrameType;

Sender::Sender(Options options, Operations& operations, rails::RailManager& rails)
    : options_(options), operations_(operations), rails_(rails) {}

Sender::Flow& Sender::flow_to(std::uint32_t peer) {
    if (peer >= flows_.size()) flows_.resize(peer + 1);
    if (flows_[peer] == nullptr) flows_[peer] = std::make_unique<Flow>();
    return *flows_[peer];
}

bool Sender::busy(std::uint32_t peer) const noexcept {
    return peer < flows_.size() && flows_[peer] != nullptr &&
           (!flows_[peer]->waiting.empty() || flows_[peer]->rendezvous > 0);
}

void Sender::start(Operation& operation, base::Nanoseconds now) {
    auto& flow = flow_to(operation.peer);
    if (flow.waiting.empty() && rails_.sendable(operation.peer) && try_send(operation, flow, now)) return;
    flow.waiting.push(operation);
    rails_.want(operation.peer, now);  // does nothing while there are links
}

void Sender::resume(std::uint32_t peer, base::Nanoseconds now) {
    if (peer >= flows_.size() || flows_[peer] == nullptr) return;
    auto& flow = *flows_[peer];
    while (!flow.waiting.empty() && rails_.sendable(peer)) {
        Operation& operation = flow.waiting.pop();  // once sent it may be gone
        if (!try_send(operation, flow, now)) {
            flow.waiting.push_front(operation);
            return;
        }
    }
}

bool Sender::try_send(Operation& operation, Flow& flow, base::Nanoseconds now) {
    const auto used = flow.charged - rails_.consumed_by(operation.peer);
    const auto cost = credit_of(operation.bytes);
    if (operation.bytes <= options_.eager_max && used + cost <= options_.eager_window) {
        flow.charged += cost;
        send_eager(operation, now);
        return true;
    }
    if (used + rts_credit > options_.eager_window + options_.header_window) return false;
    flow.charged += rts_credit;
    send_rts(operation, flow, now);
    return true;
}

void Sender::send_eager(Operation& operation, base::Nanoseconds now) {
    Frame* frame = rails_.pool().take(FrameHeader::size + EagerBody::size + operation.bytes);
    frame->type = FrameType::eager;
    frame->flags = rails::frame_flag::ordered;
    frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + EagerBody::size + operation.bytes);
    frame->payload = static_cast<std::uint32_t>(operation.bytes);
    frame->aux = frame->payload;
    base::store(frame->data() + FrameHeader::size, operation.tag);
    gather(frame->data() + FrameHeader::size + EagerBody::size, operation.buffer());
    rails_.send(operation.peer, frame, now);
    // The session holds a copy until it is acknowledged: the buffer is the application's again.
    operations_.finish(operation, {.peer = Peer::from_index(operation.peer),
                                   .tag = operation.tag,
                                   .bytes = operation.bytes,
                                   .message = operation.bytes,
                                   .rails = frame->link == rails::no_link ? 0 : std::uint64_t{1} << frame->rail});
}

// --- Rendezvous ------------------------------------------------------------------------------------------------------

void Sender::send_rts(Operation& operation, Flow& flow, base::Nanoseconds now) {
    Outgoing& message = outgoing_.take();
    message.operation = &operation;
    message.cleared = false;
    message.under_way = 0;
    message.rails = 0;
    message.shares.clear();
    ++flow.rendezvous;
    Frame* frame = rails_.pool().take(FrameHeader::size + RtsBody::size);
    frame->type = FrameType::rts;
    frame->flags = rails::frame_flag::ordered;
    frame->bytes = FrameHeader::size + RtsBody::size;
    write_rts(frame->data() + FrameHeader::size,
              {.tag = operation.tag, .bytes = operation.bytes, .sender = handle_of(message)});
    rails_.send(operation.peer, frame, now);
}

bool Sender::clear_to_send(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto cts = parse_cts(body, keys_);
    if (!cts) return false;
    Outgoing* message = outgoing_.find(cts->sender);
    if (message == nullptr || message->cleared || message->operation->peer != peer ||
        cts->bytes > message->operation->bytes) {
        return false;
    }
    message->cleared = true;
    message->receiver = cts->receiver;
    message->wanted = cts->bytes;
    message->unplanned = cts->bytes;
    if (message->wanted == 0) {
        end(*message, ErrorCode::ok);
        return true;
    }
    std::swap(message->keys, keys_);
    message->target.keys = message->keys;
    plan(*message, now);
    flow_to(peer).bulk.push_back(message->index);
    rails_.note_bulk(peer, token_of(*message), message->wanted, now);
    rails_.offer_bulk(peer, now);
    return true;
}

void Sender::plan(Outgoing& message, base::Nanoseconds now) {
    if (rails_.replans()) {
        message.shares.push_back({any_rail, 0, message.wanted});
        return;
    }
    rails_.plan_bulk(message.operation->peer, message.target, message.wanted, now, shares_);
    std::uint64_t at = 0;
    for (const auto& share : shares_) {
        message.shares.push_back({share.rail, at, at + share.bytes});
        at += share.bytes;
    }
    if (message.shares.empty()) message.shares.push_back({any_rail, 0, message.wanted});
}

std::uint64_t Sender::bulk_left(std::uint32_t peer, std::uint8_t remote_rail) noexcept {
    if (peer >= flows_.size() || flows_[peer] == nullptr) return 0;
    std::uint64_t left = 0;
    for (const auto index : flows_[peer]->bulk) {
        const Outgoing& message = outgoing_.at(index);
        if (message.target.key_for(remote_rail) != nullptr) left += message.unplanned;
    }
    return left;
}

Frame* Sender::next_bulk(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail, std::uint64_t most) {
    if (peer >= flows_.size() || flows_[peer] == nullptr) return nullptr;
    auto& bulk = flows_[peer]->bulk;
    for (auto place = bulk.begin(); place != bulk.end(); ++place) {
        Outgoing& message = outgoing_.at(*place);
        if (message.target.key_for(remote_rail) == nullptr) continue;
        for (auto& share : message.shares) {
            if (share.begin == share.end || (share.rail != rail && share.rail != any_rail)) continue;
            Frame* frame = cut(message, share, most);
            if (message.unplanned == 0) bulk.erase(place);
            return frame;
        }
    }
    return nullptr;
}

Frame* Sender::cut(Outgoing& message, Share& share, std::uint64_t most) {
    Frame* frame = rails_.pool().take(FrameHeader::size + FinBody::size);
    frame->type = FrameType::fin;
    frame->token = token_of(message);
    frame->target = &message.target;
    frame->put_offset = share.begin;
    std::uint64_t room = std::min(share.end - share.begin, most);
    std::uint64_t skip = share.begin;
    std::uint64_t bytes = 0;
    for (const auto& piece : message.operation->buffer()) {
        if (skip >= piece.size) {
            skip -= piece.size;
            continue;
        }
        if (room == 0 || frame->piece_count == Frame::max_pieces) break;
        const auto part = std::min<std::uint64_t>(piece.size - skip, room);
        frame->pieces[frame->piece_count++] = {piece.data + skip, part, piece.region};
        room -= part;
        bytes += part;
        skip = 0;
    }
    write_fin(frame->data() + FrameHeader::size, {message.receiver, share.begin, bytes});
    frame->bytes = FrameHeader::size + FinBody::size;
    frame->payload = static_cast<std::uint32_t>(bytes);
    frame->aux = frame->payload;
    share.begin += bytes;
    if (share.begin == share.end) frame->flags = rails::frame_flag::ack_now;
    message.unplanned -= bytes;
    ++message.under_way;
    return frame;
}

Sender::Outgoing* Sender::of_token(std::uint64_t token) noexcept {
    const auto value = token - 1;
    return outgoing_.find({static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)});
}

void Sender::bulk_released(const Frame& frame) {
    Outgoing* message = of_token(frame.token);
    if (message == nullptr) return;
    --message->under_way;
    message->rails |= std::uint64_t{1} << frame.rail;
    if (message->unplanned == 0 && message->under_way == 0) end(*message, ErrorCode::ok);
}

void Sender::link_lost(std::uint32_t peer, std::uint32_t rail, base::Nanoseconds now) {
    if (!busy(peer)) return;
    for (const auto index : flows_[peer]->bulk) {
        for (auto& share : outgoing_.at(index).shares) {
            if (share.rail == rail) share.rail = any_rail;
        }
    }
    if (rails_.connected(peer)) {
        rails_.offer_bulk(peer, now);
    } else {
        rails_.want(peer, now);
    }
}

void Sender::end(Outgoing& message, ErrorCode code) {
    Operation& operation = *message.operation;
    auto& flow = *flows_[operation.peer];
    const auto message_rails = message.rails;
    --flow.rendezvous;
    std::erase(flow.bulk, message.index);
    outgoing_.give(message);
    operations_.finish(operation, {.code = code,
                                   .peer = Peer::from_index(operation.peer),
                                   .tag = operation.tag,
                                   .bytes = code == ErrorCode::ok ? operation.bytes : 0,
                                   .message = operation.bytes,
                                   .rails = message_rails});
}

void Sender::peer_gone(std::uint32_t peer, ErrorCode code) {
    if (peer >= flows_.size() || flows_[peer] == nullptr) return;
    outgoing_.for_each([&](Outgoing& message) {
        if (message.operation->peer == peer) end(message, code);
    });
    const auto flow = std::move(flows_[peer]);
    while (!flow->waiting.empty()) {
        Operation& operation = flow->waiting.pop();
        operations_.finish(operation, {.code = code, .peer = Peer::from_index(peer), .tag = operation.tag});
    }
}

}  // namespace railmux::messaging

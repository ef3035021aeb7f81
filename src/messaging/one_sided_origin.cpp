#include "messaging/one_sided_origin.hpp"

#include <cstring>
#include <utility>

namespace railmux::messaging {

using rails::Frame;
using rails::FrameHeader;
using rails::FrameType;

Origin::Origin(Options options, Operations& operations, rails::RailManager& rails, BulkOut& out, BulkIn& in)
    : options_(options), operations_(operations), rails_(rails), out_(out), in_(in) {}

Origin::Flow& Origin::flow_to(std::uint32_t peer) {
    if (peer >= flows_.size()) flows_.resize(peer + 1);
    if (flows_[peer] == nullptr) flows_[peer] = std::make_unique<Flow>();
    return *flows_[peer];
}

bool Origin::busy(std::uint32_t peer) const noexcept {
    return peer < flows_.size() && flows_[peer] != nullptr && flows_[peer]->open > 0;
}

// --- Starting --------------------------------------------------------------------------------------------------------

Access& Origin::begin(Operation& operation, AccessKind kind, const RemotePlace& place) {
    Access& access = accesses_.take();
    access.kind = kind;
    access.put = {};
    access.peer = operation.peer;
    access.place = place;
    access.operation = &operation;
    access.bytes = operation.bytes;
    access.large = access.bytes > options_.small_max;
    access.sent = access.moving = access.answered = false;
    access.gone = ErrorCode::ok;
    return access;
}

void Origin::start(Access& access, base::Nanoseconds now) {
    auto& flow = flow_to(access.peer);
    ++flow.open;
    ++flow.fences.back().open;
    access.fence = flow.first_fence + flow.fences.size() - 1;
    access.cost = access.large ? 1 : credit_of(access.kind == AccessKind::atomic ? 0 : access.bytes);
    access.next = nullptr;
    (flow.waiting == nullptr ? flow.waiting : flow.last_waiting->next) = &access;
    flow.last_waiting = &access;
    const auto peer = access.peer;
    resume(peer, now);
    if (flow.waiting != nullptr) rails_.want(peer, now);  // does nothing while there are links
}

void Origin::resume(std::uint32_t peer, base::Nanoseconds now) {
    if (!busy(peer)) return;
    auto& flow = *flows_[peer];
    if (flow.resuming)
        return;  // sending may make room and lead here again: what comes next must not overtake what is sent
    flow.resuming = true;
    while (flow.waiting != nullptr && rails_.sendable(peer)) {
        Access& access = *flow.waiting;
        if (flow.charged > 0 && flow.charged + access.cost > options_.window) break;
        flow.waiting = access.next;
        flow.charged += access.cost;
        access.sent = true;
        send(access, now);
    }
    flow.resuming = false;
    if (flow.waiting != nullptr) rails_.await(peer);
}

// --- Asking ----------------------------------------------------------------------------------------------------------

void Origin::send(Access& access, base::Nanoseconds now) {
    switch (access.kind) {
        case AccessKind::put: return access.large ? send_put_request(access, now) : send_put(access, now);
        case AccessKind::get: return access.large ? send_get_request(access, now) : send_get(access, now);
        case AccessKind::atomic: return send_atomic(access, now);
    }
}

AskHead Origin::head_of(const Access& access) noexcept { return {access.place, handle_of(access)}; }

Frame* Origin::new_frame(FrameType type, std::size_t body) {
    Frame* frame = rails_.pool().take(FrameHeader::size + body);
    frame->type = type;
    frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + body);
    return frame;
}

void Origin::send_put(Access& access, base::Nanoseconds now) {
    const auto bytes = static_cast<std::size_t>(access.bytes);
    Frame* frame = new_frame(FrameType::put, PutBody::size + bytes);
    frame->payload = frame->aux = static_cast<std::uint32_t>(bytes);
    auto* const body = frame->data() + FrameHeader::size;
    write_put(body, {.head = head_of(access), .notify = access.put.notify, .payload = {}});
    gather(body + PutBody::size, access.operation->buffer());
    // The frame is a copy: the buffer is the application's again.
    if (access.put.end == PutEnd::local) end_operation(access, ErrorCode::ok);
    rails_.send(access.peer, frame, now);
}

void Origin::send_get(Access& access, base::Nanoseconds now) {
    Frame* frame = new_frame(FrameType::get, GetBody::size);
    write_get(frame->data() + FrameHeader::size, {.head = head_of(access), .bytes = access.bytes});
    rails_.send(access.peer, frame, now);
}

void Origin::send_atomic(Access& access, base::Nanoseconds now) {
    Frame* frame = new_frame(FrameType::atomic, AtomicBody::size);
    frame->flags = rails::frame_flag::ordered;
    frame->payload = frame->aux = access.atomic.width;
    const auto& call = access.atomic;
    write_atomic(frame->data() + FrameHeader::size, {.head = head_of(access),
                                                     .op = call.op,
                                                     .width = call.width,
                                                     .operand = call.operand,
                                                     .expected = call.expected});
    rails_.send(access.peer, frame, now);
}

void Origin::send_put_request(Access& access, base::Nanoseconds now) {
    access.bulk = out_.announce({.peer = access.peer,
                                 .pieces = access.operation->buffer(),
                                 .bytes = access.bytes,
                                 .owner = this,
                                 .cookie = access.index});
    access.moving = true;
    Frame* frame = new_frame(FrameType::put_request, PutRequestBody::size);
    write_put_request(
        frame->data() + FrameHeader::size,
        {.head = head_of(access), .notify = access.put.notify, .bytes = access.bytes, .sender = access.bulk});
    rails_.send(access.peer, frame, now);
}

void Origin::send_get_request(Access& access, base::Nanoseconds now) {
    const auto opened = in_.open({.peer = access.peer,
                                  .pieces = access.operation->buffer(),
                                  .bytes = access.bytes,
                                  .owner = this,
                                  .cookie = access.index});
    if (!opened) {
        end(access, ErrorCode::out_of_memory);
        return;
    }
    access.bulk = *opened;
    Frame* frame = new_frame(FrameType::get_request, GetRequestBody::size + in_.keys().size() * bulk_key_size);
    write_get_request(frame->data() + FrameHeader::size,
                      {.head = head_of(access), .bytes = access.bytes, .receiver = access.bulk}, in_.keys());
    rails_.send(access.peer, frame, now);
}

// --- Answers ---------------------------------------------------------------------------------------------------------

/// What a peer's handle names, if that was sent to this peer.
Access* Origin::asked(std::uint32_t peer, Handle handle) noexcept {
    Access* access = accesses_.find(handle);
    return access != nullptr && access->peer == peer && access->sent && !access->answered ? access : nullptr;
}

bool Origin::on_got(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto got = parse_got(body);
    if (!got) return false;
    Access* access = asked(peer, got->origin);
    if (access == nullptr || access->kind != AccessKind::get || access->large) return false;
    if (got->payload.size() != access->bytes) return false;
    scatter(access->operation->buffer(), got->payload);
    end(*access, ErrorCode::ok);
    resume(peer, now);
    return true;
}

bool Origin::on_results(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    do {
        const auto result = messaging::take_result(body);
        if (!result) return false;
        Access* access = asked(peer, result->origin);
        if (access == nullptr || !take_result(*access, *result)) return false;
    } while (!body.empty());
    resume(peer, now);
    return true;
}

bool Origin::take_result(Access& access, const Result& result) {
    const bool good = result.code == ErrorCode::ok;
    if (access.kind == AccessKind::get) {
        if (good) return false;  // that would come with the bytes
        if (access.large) in_.forget(access.bulk);
    } else if (access.kind == AccessKind::atomic) {
        if (good) std::memcpy(access.atomic.before, &result.value, access.atomic.width);
    } else if (access.moving) {
        if (out_.forget(access.bulk)) {
            if (good) return false;  // of what was never sent
            access.moving = false;
        } else {  // the peer has all of it, but the source is not ours yet
            access.answered = true;
            access.code = result.code;
            return true;
        }
    }
    end(access, result.code);
    return true;
}

void Origin::bulk_sent(std::uint64_t index, ErrorCode code, std::uint64_t) {
    Access& access = accesses_.at(static_cast<std::uint32_t>(index));
    access.moving = false;
    if (access.answered || code != ErrorCode::ok) {
        end(access, access.answered ? access.code : code);
    } else if (access.gone != ErrorCode::ok) {
        end(access, access.gone);
    } else if (access.put.end == PutEnd::local) {
        end_operation(access, ErrorCode::ok);
    }
}

void Origin::bulk_received(std::uint64_t index, ErrorCode code) {
    end(accesses_.at(static_cast<std::uint32_t>(index)), code);
}

// --- The end ---------------------------------------------------------------------------------------------------------

void Origin::end_operation(Access& access, ErrorCode code) {
    const auto bytes = static_cast<std::size_t>(access.kind == AccessKind::atomic ? access.atomic.width : access.bytes);
    operations_.finish(*std::exchange(access.operation, nullptr), {.code = code,
                                                                   .peer = Peer::from_index(access.peer),
                                                                   .bytes = code == ErrorCode::ok ? bytes : 0,
                                                                   .message = bytes});
}

void Origin::end(Access& access, ErrorCode code) {
    const auto peer = access.peer;
    auto& flow = *flows_[peer];
    auto& fence = flow.fences[access.fence - flow.first_fence];
    if (access.sent) flow.charged -= access.cost;
    --flow.open;
    --fence.open;
    const bool unseen = access.operation == nullptr || access.operation->detached;  // the next flush says it
    if (unseen && fence.code == ErrorCode::ok) fence.code = code;
    if (access.operation != nullptr) end_operation(access, code);
    accesses_.give(access);
    advance(peer, flow);
}

/// Ends the flushes that have nothing to wait for any more.
void Origin::advance(std::uint32_t peer, Flow& flow) {
    while (flow.fences.size() > 1 && flow.fences.front().open == 0) {
        const auto fence = flow.fences.front();
        flow.fences.erase(flow.fences.begin());
        ++flow.first_fence;
        Flush& flush = *fence.flush;
        if (flush.code == ErrorCode::ok && fence.code != ErrorCode::ok) {
            flush.code = fence.code;
            flush.at = Peer::from_index(peer);
        }
        if (--flush.left > 0) continue;
        operations_.finish(*flush.operation, {.code = flush.code, .peer = flush.at});
        flushes_.give(flush);
    }
}

void Origin::flush(Operation& operation, std::span<const std::uint32_t> peers) {
    Flush& flush = flushes_.take();
    flush.operation = &operation;
    flush.left = peers.size() + 1;  // one for the loop: it must not end before all are told
    flush.code = ErrorCode::ok;
    flush.at = peers.size() == 1 ? Peer::from_index(peers.front()) : Peer();
    for (const auto peer : peers) {
        auto& flow = flow_to(peer);
        flow.fences.back().flush = &flush;
        flow.fences.emplace_back();
        advance(peer, flow);
    }
    if (--flush.left > 0) return;
    operations_.finish(operation, {.code = flush.code, .peer = flush.at});
    flushes_.give(flush);
}

void Origin::flush_all(Operation& operation) {
    std::vector<std::uint32_t> peers;
    for (std::uint32_t peer = 0; peer < flows_.size(); ++peer) {
        if (flows_[peer] != nullptr) peers.push_back(peer);
    }
    flush(operation, peers);
}

void Origin::peer_gone(std::uint32_t peer, ErrorCode code) {
    if (!busy(peer)) return;
    flows_[peer]->waiting = nullptr;
    accesses_.for_each([&](Access& access) {
        if (access.peer != peer) return;
        if (!access.moving) return end(access, code);
        access.gone = code;  // the end comes when no rail reads it any more
    });
}

}  // namespace railmux::messaging

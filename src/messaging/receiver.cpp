#include "messaging/receiver.hpp"

#include <algorithm>
#include <cstring>

namespace railmux::messaging {

using rails::Frame;
using rails::FrameHeader;
using rails::FrameType;

namespace {

/// The outcome of receiving a message of `status.message` bytes into `room` bytes.
Status received(Status status, std::size_t room) noexcept {
    status.bytes = std::min(status.message, room);
    status.code = status.bytes < status.message ? ErrorCode::truncated : ErrorCode::ok;
    return status;
}

}  // namespace

Receiver::Receiver(Operations& operations, rails::RailManager& rails) : operations_(operations), rails_(rails) {}

// --- What the application asks for -----------------------------------------------------------------------------------

void Receiver::start(Operation& operation, base::Nanoseconds now) {
    const auto& posted = operation.posted;
    if (auto* found = matcher_.find(posted.peer, {posted.tag, posted.mask}); found != nullptr) {
        matcher_.take(*found);
        receive(static_cast<Arrived&>(*found), operation, now);
    } else {
        matcher_.post(operation.posted);
    }
}

bool Receiver::cancel(Operation& operation) {
    if (!operation.receive || !operation.posted.listed) return false;
    matcher_.withdraw(operation.posted);
    operations_.finish(operation, {.code = ErrorCode::cancelled});
    return true;
}

const Arrived* Receiver::probe(std::uint32_t peer, TagMatch match) const noexcept {
    return static_cast<const Arrived*>(matcher_.find(peer, match));
}

Arrived* Receiver::claim(std::uint32_t peer, TagMatch match) noexcept {
    auto* found = matcher_.find(peer, match);
    if (found != nullptr) matcher_.take(*found);
    return static_cast<Arrived*>(found);
}

void Receiver::receive(Arrived& message, Operation& operation, base::Nanoseconds now) {
    const auto status = message.status();
    if (message.broken) {
        operations_.finish(
            operation,
            {.code = ErrorCode::peer_lost, .peer = status.peer, .tag = status.tag, .message = status.message});
    } else if (message.left_behind) {
        rails_.consumed(message.peer, rts_credit, now);
        answer_rts(operation, status, message.sender, now);
    } else {
        rails_.consumed(message.peer, credit_of(message.bytes), now);
        const auto bytes = static_cast<std::size_t>(message.bytes);
        deliver(operation, status,
                message.payload == nullptr ? std::span<const std::byte>{}
                                           : std::span<const std::byte>(message.payload->data(), bytes));
    }
    free(message);
}

void Receiver::drop(Arrived& message, base::Nanoseconds now) {
    if (message.left_behind && !message.broken) {
        rails_.consumed(message.peer, rts_credit, now);
        send_cts(message.peer, {.sender = message.sender, .receiver = {}, .bytes = 0}, now);
    } else if (!message.left_behind) {
        rails_.consumed(message.peer, credit_of(message.bytes), now);
    }
    free(message);
}

void Receiver::free(Arrived& message) noexcept {
    if (message.payload != nullptr) rails_.pool().give(std::exchange(message.payload, nullptr));
    arrived_.give(message);
}

// --- What comes in ---------------------------------------------------------------------------------------------------

Operation* Receiver::match(std::uint32_t peer, Tag tag) noexcept {
    Posted* posted = matcher_.match(peer, tag);
    return posted == nullptr ? nullptr : posted->operation;
}

void Receiver::deliver(Operation& operation, Status status, std::span<const std::byte> payload) {
    status = received(status, operation.bytes);
    scatter(operation.buffer(), 0, payload.first(status.bytes));
    operations_.finish(operation, status);
}

bool Receiver::on_eager(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto eager = parse_eager(body);
    if (!eager) return false;
    if (Operation* operation = match(peer, eager->tag); operation != nullptr) {
        rails_.consumed(peer, credit_of(eager->payload.size()), now);
        deliver(*operation, {.peer = Peer::from_index(peer), .tag = eager->tag, .message = eager->payload.size()},
                eager->payload);
        return true;
    }
    Arrived& message = arrived_.take();
    message.peer = peer;
    message.tag = eager->tag;
    message.left_behind = false;
    message.broken = false;
    message.bytes = eager->payload.size();
    if (!eager->payload.empty()) {
        message.payload = rails_.pool().take(eager->payload.size());
        std::memcpy(message.payload->data(), eager->payload.data(), eager->payload.size());
    }
    matcher_.add(message);
    return true;
}

bool Receiver::on_rts(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto rts = parse_rts(body);
    if (!rts) return false;
    if (Operation* operation = match(peer, rts->tag); operation != nullptr) {
        rails_.consumed(peer, rts_credit, now);
        answer_rts(*operation,
                   {.peer = Peer::from_index(peer), .tag = rts->tag, .message = static_cast<std::size_t>(rts->bytes)},
                   rts->sender, now);
        return true;
    }
    Arrived& message = arrived_.take();
    message.peer = peer;
    message.tag = rts->tag;
    message.left_behind = true;
    message.broken = false;
    message.bytes = rts->bytes;
    message.sender = rts->sender;
    matcher_.add(message);
    return true;
}

void Receiver::answer_rts(Operation& operation, const Status& message, Handle sender, base::Nanoseconds now) {
    const auto peer = message.peer.index();
    auto status = received(message, operation.bytes);
    if (status.bytes == 0) {
        send_cts(peer, {.sender = sender, .receiver = {}, .bytes = 0}, now);
        operations_.finish(operation, status);
        return;
    }
    Incoming& incoming = incoming_.take();
    incoming.peer = peer;
    incoming.operation = &operation;
    incoming.status = status;
    incoming.wanted = status.bytes;
    incoming.received = 0;
    std::byte* place = operation.piece.data;
    if (operation.buffer().size() > 1) {
        incoming.bounce = std::make_unique_for_overwrite<std::byte[]>(status.bytes);
        place = incoming.bounce.get();
    }
    rails_.open_regions({place, status.bytes}, incoming.regions);
    keys_.clear();
    for (const auto& open : incoming.regions) {
        keys_.push_back({static_cast<std::uint8_t>(open.rail), open.region.key});
    }
    if (keys_.empty()) {
        send_cts(peer, {.sender = sender, .receiver = {}, .bytes = 0}, now);
        finish(incoming, ErrorCode::out_of_memory);
        return;
    }
    send_cts(peer, {.sender = sender, .receiver = handle_of(incoming), .bytes = incoming.wanted}, now);
}

void Receiver::send_cts(std::uint32_t peer, const CtsBody& body, base::Nanoseconds now) {
    const auto keys =
        body.bytes == 0 ? std::span<const rails::BulkTarget::Key>{} : std::span<const rails::BulkTarget::Key>(keys_);
    const auto bytes = FrameHeader::size + CtsBody::size + keys.size() * CtsBody::key_size;
    Frame* frame = rails_.pool().take(bytes);
    frame->type = FrameType::cts;
    frame->bytes = static_cast<std::uint32_t>(bytes);
    write_cts(frame->data() + FrameHeader::size, body, keys);
    rails_.send(peer, frame, now);
}

bool Receiver::on_fin(std::uint32_t peer, std::span<const std::byte> body) {
    const auto fin = parse_fin(body);
    if (!fin) return false;
    Incoming* incoming = incoming_.find(fin->receiver);
    if (incoming == nullptr || incoming->peer != peer || fin->offset > incoming->wanted ||
        fin->bytes > incoming->wanted - fin->offset || fin->bytes > incoming->wanted - incoming->received) {
        return false;
    }
    incoming->received += fin->bytes;
    if (incoming->received == incoming->wanted) finish(*incoming, incoming->status.code);
    return true;
}

void Receiver::finish(Incoming& incoming, ErrorCode code) {
    rails_.close_regions(incoming.regions);
    Operation& operation = *incoming.operation;
    auto status = incoming.status;
    status.code = code;
    if (code != ErrorCode::ok && code != ErrorCode::truncated) {
        status.bytes = 0;
    } else if (incoming.bounce != nullptr) {
        scatter(operation.buffer(), 0, {incoming.bounce.get(), status.bytes});
    }
    incoming.bounce.reset();
    incoming_.give(incoming);
    operations_.finish(operation, status);
}

void Receiver::peer_gone(std::uint32_t peer, ErrorCode code) {
    while (Posted* posted = matcher_.withdraw_any_of(peer)) {
        operations_.finish(*posted->operation, {.code = code, .peer = Peer::from_index(peer), .tag = posted->tag});
    }
    incoming_.for_each([&](Incoming& incoming) {
        if (incoming.peer == peer) finish(incoming, code);
    });
    arrived_.for_each([&](Arrived& message) {
        if (message.peer == peer && message.left_behind) message.broken = true;
    });
}

}  // namespace railmux::messaging

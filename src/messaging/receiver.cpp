#include "messaging/way_in.hpp"

#include <algorithm>
#include <cstring>

namespace railmux::messaging {

Receiver::Receiver(Operations& operations, rails::RailManager& rails, BulkIn& bulk)
    : operations_(operations), rails_(rails), bulk_(bulk) {}

// --- What the application asks for -----------------------------------------------------------------------------------

/// There are messages that nobody has asked for yet.
void Receiver::start_late(Operation& operation, base::Nanoseconds now) {
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
    give_credit(message, now);
    if (message.left_behind && message.orphan != ErrorCode::ok) {
        operations_.finish(operation,
                           {.code = message.orphan, .peer = status.peer, .tag = status.tag, .message = status.message});
    } else if (message.left_behind) {
        answer_rts(operation, status, {message.sender, message.offered}, now);
    } else {
        const auto bytes = static_cast<std::size_t>(message.bytes);
        deliver(operation, status,
                message.payload == nullptr ? std::span<const std::byte>{}
                                           : std::span<const std::byte>(message.payload->data(), bytes));
    }
    free(message);
}

void Receiver::drop(Arrived& message, base::Nanoseconds now) {
    give_credit(message, now);
    if (message.left_behind && message.orphan == ErrorCode::ok) {
        closed_ ? bulk_.refuse_for_good(message.peer, message.sender, now)
                : bulk_.refuse(message.peer, message.sender, now);
    }
    free(message);
}

void Receiver::give_credit(const Arrived& message, base::Nanoseconds now) {
    if (message.orphan != ErrorCode::ok)
        return;  // the next session counts from nought: it would seem that more was taken than was sent
    rails_.consumed(message.peer, message.left_behind ? rts_credit : credit_of(message.bytes), now);
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

/// Nobody has asked for it yet.
void Receiver::keep_eager(std::uint32_t peer, const EagerBody& eager, base::Nanoseconds now) {
    if (closed_) return rails_.consumed(peer, credit_of(eager.payload.size()), now);
    Arrived& message = arrived_.take();
    message.peer = peer;
    message.tag = eager.tag;
    message.left_behind = false;
    message.orphan = ErrorCode::ok;
    message.bytes = eager.payload.size();
    if (!eager.payload.empty()) {
        message.payload = rails_.pool().take(eager.payload.size());
        std::memcpy(message.payload->data(), eager.payload.data(), eager.payload.size());
    }
    matcher_.add(message);
    ++unexpected_;
}

bool Receiver::on_rts(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto rts = parse_rts(body, keys_);
    if (!rts) return false;
    if (Operation* operation = match(peer, rts->tag); operation != nullptr) {
        rails_.consumed(peer, rts_credit, now);
        answer_rts(*operation,
                   {.peer = Peer::from_index(peer), .tag = rts->tag, .message = static_cast<std::size_t>(rts->bytes)},
                   {rts->sender, keys_}, now);
        return true;
    }
    if (closed_) {
        rails_.consumed(peer, rts_credit, now);
        bulk_.refuse_for_good(peer, rts->sender, now);
        return true;
    }
    Arrived& message = arrived_.take();
    message.peer = peer;
    message.tag = rts->tag;
    message.left_behind = true;
    message.orphan = ErrorCode::ok;
    message.bytes = rts->bytes;
    message.sender = rts->sender;
    message.offered.assign(keys_.begin(), keys_.end());
    matcher_.add(message);
    ++unexpected_;
    return true;
}

void Receiver::answer_rts(Operation& operation, const Status& message, const BulkIn::Offer& offer,
                          base::Nanoseconds now) {
    const auto peer = message.peer.index();
    const auto status = received(message, operation.bytes);
    if (status.bytes == 0) {
        bulk_.refuse(peer, offer.sender, now);
        operations_.finish(operation, status);
        return;
    }
    operation.status = status;  // what it will be if all goes well
    const bool taken = bulk_.take(
        {.peer = peer, .pieces = operation.buffer(), .bytes = status.bytes, .owner = this, .cookie = operation.index},
        offer, now);
    if (!taken) bulk_received(operation.index, ErrorCode::out_of_memory);
}

void Receiver::bulk_received(std::uint64_t index, ErrorCode code) {
    Operation& operation = operations_.at(static_cast<std::uint32_t>(index));
    auto status = operation.status;
    if (code != ErrorCode::ok) {
        status.code = code;
        status.bytes = 0;
    }
    operations_.finish(operation, status);
}

void Receiver::peer_gone(std::uint32_t peer, ErrorCode code) {
    while (Posted* posted = matcher_.withdraw_any_of(peer)) {
        operations_.finish(*posted->operation, {.code = code, .peer = Peer::from_index(peer), .tag = posted->tag});
    }
    arrived_.for_each([&](Arrived& message) {
        if (message.peer == peer && message.orphan == ErrorCode::ok) message.orphan = code;
    });
}

void Receiver::close(base::Nanoseconds now) {
    closed_ = true;
    while (auto* oldest = matcher_.first()) {
        matcher_.take(*oldest);
        drop(static_cast<Arrived&>(*oldest), now);
    }
}

}  // namespace railmux::messaging

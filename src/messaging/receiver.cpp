#include "messaging/bundle.hpp"
#include "messaging/way_in.hpp"

#include <algorithm>

#include "base/bytes.hpp"

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
    if (Operation* const send = end_waiting(message); send != nullptr) {
        hand_over(*send, operation);
        return free(message);
    }
    const auto status = message.status();
    give_credit(message, now);
    if (message.left_behind && message.orphan != ErrorCode::ok) {
        operations_.finish(operation,
                           {.code = message.orphan, .peer = status.peer, .tag = status.tag, .message = status.message});
    } else if (message.left_behind) {
        const BulkIn::Offer offer{message.sender, message.offered, message.inlined, message.asks()};
        pass_inlined(message, answer_rts(operation, status, offer, now));
    } else {
        const auto bytes = static_cast<std::size_t>(message.bytes);
        deliver(operation, status,
                message.payload == nullptr ? std::span<const std::byte>{}
                                           : std::span<const std::byte>(message.payload->data(), bytes));
    }
    free(message);
}

void Receiver::drop(Arrived& message, base::Nanoseconds now) {
    if (Operation* const send = end_waiting(message); send != nullptr) {
        finish_own(*send, closed_ ? ErrorCode::peer_left : ErrorCode::ok);
        return free(message);
    }
    give_credit(message, now);
    if (message.left_behind && message.orphan == ErrorCode::ok) {
        if (message.asks()) {
            closed_ ? bulk_.refuse_for_good(message.peer, message.sender, now)
                    : bulk_.refuse(message.peer, message.sender, now);
        }
        pass_inlined(message, std::nullopt);
    }
    free(message);
}

void Receiver::give_credit(const Arrived& message, base::Nanoseconds now) {
    if (message.orphan != ErrorCode::ok)
        return;  // the next session counts from nought: it would seem that more was taken than was sent
    const auto credit = credit_of(message.left_behind ? message.inlined : message.bytes);
    if (message.own) {
        own_kept_ -= credit;
    } else {
        rails_.consumed(message.peer, credit, now);
    }
}

void Receiver::free(Arrived& message) noexcept {
    if (message.payload != nullptr) rails_.pool().give(std::exchange(message.payload, nullptr));
    message.own = false;
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
    if (!eager.payload.empty()) message.payload = keep(eager.payload);
    matcher_.add(message);
    ++unexpected_;
}

rails::Frame* Receiver::keep(std::span<const std::byte> payload) {
    rails::Frame* copy = rails_.pool().take(payload.size());
    base::copy(copy->data(), payload.data(), payload.size());
    return copy;
}

/// Its credit is given at one blow.
bool Receiver::on_bundle(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    std::uint32_t taken = 0;
    const auto each = [&](Tag tag, std::span<const std::byte> payload) RAILMUX_LAMBDA_IN_LINE {
        Posted* const posted = matcher_.match(peer, tag);
        if (posted == nullptr) [[unlikely]]
            return keep_eager(peer, {tag, payload}, now);
        deliver(*posted->operation, {.peer = Peer::from_index(peer), .tag = tag, .message = payload.size()}, payload);
        taken += credit_of(payload.size());
    };
    const bool good = read_bundle(body, each);
    if (taken > 0) rails_.consumed(peer, taken, now);
    return good;
}

bool Receiver::on_rts(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto rts = parse_rts(body, keys_);
    if (!rts) return false;
    if (rts->inlined > 0) {
        if (std::ranges::find(coming_, peer, &Coming::peer) != coming_.end()) return false;
        coming_.push_back({.peer = peer, .bytes = rts->inlined});  // first: whatever the answer brings about
    }
    const auto coming = [&] { return std::ranges::find(coming_, peer, &Coming::peer); };
    if (Operation* operation = match(peer, rts->tag); operation != nullptr) {
        rails_.consumed(peer, credit_of(rts->inlined), now);
        const auto transfer = answer_rts(
            *operation,
            {.peer = Peer::from_index(peer), .tag = rts->tag, .message = static_cast<std::size_t>(rts->bytes)},
            {rts->sender, keys_, rts->inlined, !rts->whole()}, now);
        if (const auto place = coming(); place != coming_.end()) place->transfer = transfer;
        return true;
    }
    if (closed_) {
        rails_.consumed(peer, credit_of(rts->inlined), now);
        if (!rts->whole()) bulk_.refuse_for_good(peer, rts->sender, now);
        return true;
    }
    Arrived& message = arrived_.take();
    message.peer = peer;
    message.tag = rts->tag;
    message.left_behind = true;
    message.orphan = ErrorCode::ok;
    message.bytes = rts->bytes;
    message.inlined = rts->inlined;
    message.sender = rts->sender;
    message.offered.assign(keys_.begin(), keys_.end());
    matcher_.add(message);
    if (const auto place = coming(); place != coming_.end()) place->message = &message;
    ++unexpected_;
    return true;
}

bool Receiver::on_inlined(std::uint32_t peer, std::span<const std::byte> body) {
    const auto place = std::ranges::find(coming_, peer, &Coming::peer);
    const bool fits =
        place != coming_.end() && body.size() <= std::min<std::size_t>(largest_small, place->bytes - place->here);
    if (!fits || body.empty()) return false;
    if (auto* kept = place->message; kept != nullptr && kept->payload == nullptr)
        kept->payload = rails_.pool().take(kept->inlined);
    const auto offset = place->here;
    place->here += static_cast<std::uint32_t>(body.size());
    const auto coming = *place;
    const bool all = coming.here == coming.bytes;
    if (all) coming_.erase(place);
    if (coming.message != nullptr) {
        auto& message = *coming.message;
        base::copy(message.payload->data() + offset, body.data(), body.size());
        if (all && message.inlined == message.bytes) message.left_behind = false;  // it is as any other now
    }
    if (coming.transfer) bulk_.add_inlined(*coming.transfer, offset, body);
    return true;
}

/// A kept message is kept no longer: its inlined bytes go to that transfer, now and as they come, or nowhere.
void Receiver::pass_inlined(Arrived& message, std::optional<Handle> transfer) {
    auto here = message.inlined;
    if (const auto place = std::ranges::find(coming_, &message, &Coming::message); place != coming_.end()) {
        here = place->here;
        place->message = nullptr;
        place->transfer = transfer;
    }
    // Without a frame there is nothing: the peer went while it was answered.
    if (transfer && here > 0 && message.payload != nullptr)
        bulk_.add_inlined(*transfer, 0, {message.payload->data(), here});
}

/// The transfer that brings it, if there is one.
std::optional<Handle> Receiver::answer_rts(Operation& operation, const Status& message, const BulkIn::Offer& offer,
                                           base::Nanoseconds now) {
    const auto peer = message.peer.index();
    const auto status = received(message, operation.bytes);
    if (status.bytes == 0) {
        if (offer.asks) bulk_.refuse(peer, offer.sender, now);
        operations_.finish(operation, status);
        return std::nullopt;
    }
    operation.status = status;  // what it will be if all goes well
    const auto transfer = bulk_.take(
        {.peer = peer, .pieces = operation.buffer(), .bytes = status.bytes, .owner = this, .cookie = operation.index},
        offer, now);
    if (!transfer) bulk_received(operation.index, ErrorCode::out_of_memory);
    return transfer;
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
        if (message.peer != peer || message.orphan != ErrorCode::ok) return;
        message.orphan = code;
        if (Operation* const send = end_waiting(message); send != nullptr) {
            message.left_behind = true;
            finish_own(*send, code);
        }
    });
    std::erase_if(coming_, [&](const Coming& coming) { return coming.peer == peer; });
}

void Receiver::close(base::Nanoseconds now) {
    closed_ = true;
    while (auto* oldest = matcher_.first()) {
        matcher_.take(*oldest);
        drop(static_cast<Arrived&>(*oldest), now);
    }
}

}  // namespace railmux::messaging

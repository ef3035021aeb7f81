#include "messaging/own_messages.hpp"

#include <utility>

namespace railmux::messaging {

void Receiver::deliver_own(Operation& send) {
    if (Operation* const receive = match(own_.peer, send.tag); receive != nullptr) return hand_over(send, *receive);
    if (keep_own(send.tag, send.buffer(), send.bytes)) return finish_own(send, ErrorCode::ok);
    Arrived& message = new_own(send.tag, send.bytes);
    list_own(message);
    message.waiting = &send;
    ++own_waiting_;
}

/// Nobody has asked for it yet. False: it is too long, or there are too many, for a copy to be kept.
bool Receiver::keep_own(Tag tag, std::span<const transports::Segment> pieces, std::size_t bytes) {
    const auto cost = credit_of(bytes);
    if (bytes > own_.largest_kept || own_kept_ + cost > own_.window) return false;
    Arrived& message = new_own(tag, bytes);
    try {
        if (bytes > 0) message.payload = rails_.pool().take(bytes);
        list_own(message);
    } catch (...) {
        free(message);
        throw;
    }
    if (bytes > 0) gather(message.payload->data(), pieces);
    own_kept_ += cost;
    return true;
}

Arrived& Receiver::new_own(Tag tag, std::size_t bytes) {
    Arrived& message = arrived_.take();
    message.peer = own_.peer;
    message.tag = tag;
    message.own = true;
    message.left_behind = false;
    message.orphan = ErrorCode::ok;
    message.bytes = bytes;
    return message;
}

void Receiver::list_own(Arrived& message) {
    matcher_.add(message);
    ++unexpected_;
}

/// From the buffer of the one to that of the other.
void Receiver::hand_over(Operation& send, Operation& receive) {
    const auto status =
        received({.peer = Peer::from_index(own_.peer), .tag = send.tag, .message = send.bytes}, receive.bytes);
    copy_pieces(receive.buffer(), send.buffer(), status.bytes);
    operations_.finish(receive, status);
    finish_own(send, ErrorCode::ok);
}

void Receiver::finish_own(Operation& send, ErrorCode code) {
    auto status = sent_status(own_.peer, send.tag, send.bytes, 0);
    status.code = code;
    if (code != ErrorCode::ok) status.bytes = 0;
    operations_.finish(send, status);
}

/// The send that waits for the message to be received, which it does no longer; nullptr if there is none.
Operation* Receiver::end_waiting(Arrived& message) noexcept {
    if (message.waiting != nullptr) --own_waiting_;
    return std::exchange(message.waiting, nullptr);
}

}  // namespace railmux::messaging

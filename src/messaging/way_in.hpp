// Receiver, the way of small messages in: in line for who begins each receive, and for who looks at the rails. What is rare is
// in receiver.cpp.
//
// Threads and lifetime: as Receiver's.
#pragma once

#include <algorithm>

#include "base/in_line.hpp"
#include "messaging/receiver.hpp"
#include "rails/way_down.hpp"

namespace railmux::messaging {

/// The outcome of receiving a message of `status.message` bytes into `room` bytes.
[[nodiscard]] inline Status received(Status status, std::size_t room) noexcept {
    status.bytes = std::min(status.message, room);
    status.code = status.bytes < status.message ? ErrorCode::truncated : ErrorCode::ok;
    return status;
}

RAILMUX_IN_LINE void Receiver::start(Operation& operation, base::Nanoseconds now) {
    if (matcher_.any_unexpected()) [[unlikely]]
        return start_late(operation, now);
    matcher_.post(operation.posted);
}

RAILMUX_IN_LINE bool Receiver::on_eager(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto eager = parse_eager(body);
    if (!eager) [[unlikely]]
        return false;
    Posted* const posted = matcher_.match(peer, eager->tag);
    if (posted == nullptr) [[unlikely]] {
        keep_eager(peer, *eager, now);
        return true;
    }
    deliver(*posted->operation, {.peer = Peer::from_index(peer), .tag = eager->tag, .message = eager->payload.size()},
            eager->payload);
    rails_.consumed(peer, credit_of(eager->payload.size()), now);
    return true;
}

RAILMUX_IN_LINE void Receiver::deliver(Operation& operation, Status status, std::span<const std::byte> payload) {
    status = received(status, operation.bytes);
    scatter(operation.buffer(), payload.first(status.bytes));
    operations_.finish(operation, status);
}

}  // namespace railmux::messaging

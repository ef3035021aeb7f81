// Sender, the way of small messages: in line for who calls it with each. What is rare is in sender.cpp.
//
// Threads and lifetime: as Sender's.
#pragma once

#include <utility>

#include "base/bytes.hpp"
#include "base/in_line.hpp"
#include "messaging/sender.hpp"
#include "rails/way_down.hpp"

namespace railmux::messaging {

RAILMUX_IN_LINE bool Sender::send_now(std::uint32_t peer, Tag tag, ConstBuffer data, base::Nanoseconds now,
                                      Leaving leaving, std::uint64_t& sent) {
    auto& flow = flow_to(peer);
    auto* const talk = rails_.sendable(peer);
    if (talk == nullptr || !flow.waiting.empty()) [[unlikely]]
        return false;
    if (data.size() > talk->eager_max) [[unlikely]]
        return false;
    const bool another = std::exchange(flow.burst, burst_) == burst_;  // one message to each of many shares nothing
    if (leaving == Leaving::bundled && another && data.size() <= Bundle::most_message)
        return try_bundle(peer, tag, data, flow, now, *talk);
    if (flow.bundle.open()) [[unlikely]]
        close_bundle(peer, flow, now);
    return try_eager({peer, tag, data.size(), leaving == Leaving::at_once}, flow, *talk, now, sent,
                     [&](std::byte* to) { base::copy(to, data.data(), data.size()); });
}

/// Of a message that is so short. False: there is no credit left.
RAILMUX_IN_LINE bool Sender::try_bundle(std::uint32_t peer, Tag tag, ConstBuffer data, Flow& flow,
                                        base::Nanoseconds now, const rails::Conversation& talk) {
    const auto cost = credit_of(data.size());
    if (flow.charged - talk.consumed_there + cost > options_.eager_window) [[unlikely]]
        return false;
    if (!flow.bundle.open() || !flow.bundle.has_room(data.size())) [[unlikely]]
        begin_bundle(peer, flow, now);
    flow.charged += cost;
    flow.bundle.add(tag, data);
    return true;
}

/// Of a message that is not too large for that. False: there is no credit left.
template <typename Fill>
RAILMUX_IN_LINE bool Sender::try_eager(const Eager& message, Flow& flow, rails::Conversation& talk,
                                       base::Nanoseconds now, std::uint64_t& sent, Fill fill) {
    using rails::FrameHeader;
    const auto cost = credit_of(message.bytes);
    const auto used = flow.charged - talk.consumed_there;
    if (used + cost > options_.eager_window) [[unlikely]]
        return false;
    flow.charged += cost;
    const auto size = static_cast<std::uint32_t>(FrameHeader::size + EagerBody::size + message.bytes);
    rails::Frame* frame = rails_.pool().take(size);
    base::store(frame->data() + FrameHeader::size, message.tag);
    fill(frame->data() + FrameHeader::size + EagerBody::size);
    frame->type = rails::FrameType::eager;  // last: what is set here is known when the header is written
    frame->flags = rails::frame_flag::ordered;
    frame->bytes = size;
    frame->payload = frame->aux = static_cast<std::uint32_t>(message.bytes);
    frame->unaccompanied = message.unaccompanied;
    rails_.send(message.peer, talk, frame, now);
    // The session holds a copy until it is acknowledged: the buffer is the application's again.
    sent = frame->link == rails::no_link ? 0 : std::uint64_t{1} << frame->rail;
    return true;
}

}  // namespace railmux::messaging

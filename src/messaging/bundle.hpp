// Bundle: several small messages to one peer in one frame. What a frame costs both sides, whatever it carries (its number, its
// copy until it is acknowledged, the rail's slot or call, what is reckoned of it), is several times what a small message costs:
// the messages of a burst share it. Which messages may wait for each other, and for how long, Burst knows.
//
// The frame's body is one message behind the other: u16 bytes (and `same_tag`, if its tag is that of the one before), else u64
// tag, then its payload.
//
// Threads: one engine at a time.
// Lifetime: a value. The frame is the pool's; who closes a bundle sends it, or gives it back.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <railmux/message.hpp>

#include "base/bytes.hpp"
#include "base/in_line.hpp"
#include "rails/frame.hpp"
#include "sched/policy.hpp"

namespace railmux::messaging {

inline constexpr std::uint16_t same_tag = 0x8000;

class Bundle {
public:
    /// The longest message that goes so: of longer ones a few fill a frame, and their copies cost more than that.
    static constexpr std::size_t most_message = 256;
    /// Of the frame, as many as the pool has room for in small ones; and of messages, as the other side, which is idle until
    /// the first of them come, and we, when it still has the last to take, are to be at work at the same time.
    static constexpr std::uint32_t most_bytes = 1000;
    static constexpr std::uint32_t most_messages = 24;
    static constexpr std::size_t length_size = 2, tag_size = 8;

    [[nodiscard]] bool open() const noexcept { return frame_ != nullptr; }
    /// `frame` has room for most_bytes.
    void begin(rails::Frame* frame) noexcept {
        frame_ = frame;
        end_ = rails::FrameHeader::size;
        payload_ = 0;
        messages_ = 0;
    }
    [[nodiscard]] bool has_room(std::size_t bytes) const noexcept {
        return end_ + length_size + tag_size + bytes <= most_bytes && messages_ < most_messages;
    }
    RAILMUX_IN_LINE void add(Tag tag, ConstBuffer data) noexcept {
        assert(open() && has_room(data.size()) && data.size() <= most_message);
        const bool same = tag == tag_ && end_ > rails::FrameHeader::size;
        auto* to = frame_->data() + end_;
        base::store(to, static_cast<std::uint16_t>(data.size() | (same ? same_tag : 0)));
        to += length_size;
        if (!same) {
            base::store(to, tag);
            to += tag_size;
            tag_ = tag;
        }
        ++messages_;
        base::copy(to, data.data(), data.size());
        end_ = static_cast<std::uint32_t>(to + data.size() - frame_->data());
        payload_ += static_cast<std::uint32_t>(data.size());
    }
    /// The frame, ready to be sent.
    [[nodiscard]] rails::Frame* close() noexcept {
        frame_->type = rails::FrameType::bundle;
        frame_->flags = rails::frame_flag::ordered;
        frame_->bytes = end_;
        frame_->payload = frame_->aux = payload_;
        return std::exchange(frame_, nullptr);
    }

private:
    rails::Frame* frame_ = nullptr;
    std::uint32_t end_ = 0;  // bytes of it that are used
    std::uint32_t payload_ = 0;
    std::uint32_t messages_ = 0;
    Tag tag_ = 0;  // of the last message
};

// A bundle of the smallest has no choice of rail of its own, nor does anybody ask for its acknowledgement.
static_assert(rails::FrameHeader::size + Bundle::tag_size + Bundle::most_messages * (Bundle::length_size + 8) <=
              sched::light_bytes);

/// Calls each(tag, payload) for the messages of a bundle, in order, up to what is malformed. False when something is, also one
/// message too many, or too long: what is kept of each that nobody awaits is much more than the bytes that bring it.
template <typename Each>
[[nodiscard]] RAILMUX_IN_LINE bool read_bundle(std::span<const std::byte> body, Each each) {
    std::uint32_t messages = 0;
    Tag tag = 0;
    do {
        if (body.size() < Bundle::length_size) [[unlikely]]
            return false;
        const auto word = base::load<std::uint16_t>(body.data());
        body = body.subspan(Bundle::length_size);
        if ((word & same_tag) == 0) {
            if (body.size() < Bundle::tag_size) [[unlikely]]
                return false;
            tag = base::load<std::uint64_t>(body.data());
            body = body.subspan(Bundle::tag_size);
        } else if (messages == 0) [[unlikely]] {
            return false;
        }
        const std::size_t bytes = word & static_cast<std::uint16_t>(~same_tag);
        if (bytes > std::min(body.size(), Bundle::most_message) || messages++ == Bundle::most_messages) [[unlikely]]
            return false;
        each(tag, body.first(bytes));
        body = body.subspan(bytes);
    } while (!body.empty());
    return true;
}

}  // namespace railmux::messaging

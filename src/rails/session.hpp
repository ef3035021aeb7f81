// Session: the reliable, exactly-once frame exchange with one peer, whatever links its frames take.
//
// A pure state machine: it numbers frames, keeps them until acknowledged, drops duplicates and restores the order of the
// ordered ones. It knows no links, rails or clocks; the rail manager moves the frames.
// Threads: one engine at a time.
// Lifetime: owned by the peer's entry; the frames in its window belong to it until acknowledged.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/in_line.hpp"
#include "rails/frame.hpp"
#include "rails/frame_pool.hpp"
#include "rails/sequence_ring.hpp"

namespace railmux::rails {

class Session {
public:
    /// Frames under way and not acknowledged, at most. Enough for 16 MiB of page-sized messages in flight, and the largest
    /// selective acknowledgement is then 512 bytes.
    static constexpr std::uint32_t window = 4096;
    static constexpr std::size_t max_sack_bytes = window / 8;

    explicit Session(FramePool& pool) noexcept : pool_(pool) {}
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // --- Sending -----------------------------------------------------------------------------------------------------

    /// Whether a frame comes before another one that may be under way with it: numbers wrap around.
    [[nodiscard]] static constexpr bool precedes(std::uint32_t number, std::uint32_t other) noexcept {
        return other - number - 1 < window;
    }

    /// Whether `enter` may be called. A part of the window is kept for frames that answer others.
    [[nodiscard]] bool open() const noexcept { return next_seq_ - sent_.base() < window; }
    [[nodiscard]] bool open_for_messages() const noexcept { return next_seq_ - sent_.base() < window - window / 8; }
    /// Every frame before this one has been entered.
    [[nodiscard]] std::uint32_t numbered() const noexcept { return next_seq_; }
    /// Every frame before this one has been acknowledged.
    [[nodiscard]] std::uint32_t acknowledged() const noexcept { return sent_.base(); }
    [[nodiscard]] bool all_acknowledged() const noexcept { return next_seq_ == sent_.base(); }

    /// Everything before `ack` has arrived, somebody says: `acknowledged` is to be told later. News: that was not known.
    enum class Hearing : std::uint8_t { known, news, impossible };
    [[nodiscard]] Hearing hear(std::uint32_t ack) noexcept {
        const auto ahead = ack - heard_;
        if (ahead == 0 || ahead > ~std::uint32_t{0} / 2) return Hearing::known;
        if (ahead > next_seq_ - heard_) return Hearing::impossible;
        heard_ = ack;
        return Hearing::news;
    }
    /// Everything before this one is known to have arrived: at least acknowledged().
    [[nodiscard]] std::uint32_t heard() const noexcept { return heard_; }
    [[nodiscard]] bool all_heard() const noexcept { return next_seq_ == heard_; }

    /// Gives the frame its numbers, writes its header, and keeps it until it is acknowledged.
    RAILMUX_IN_LINE void enter(Frame& frame, const Stamp& stamp) {
        FrameHeader header{.type = frame.type, .flags = frame.flags, .seq = next_seq_++, .aux = frame.aux};
        if ((frame.flags & frame_flag::ordered) != 0) header.order = next_order_++;
        write_header(frame.data(), header, stamp);
        frame.seq = header.seq;
        sent_.at(header.seq) = &frame;
    }

    /// Everything before `ack` has arrived, and of what follows the frames set in `sack` (bit i: ack + i). Calls
    /// `release(Frame&)` for each newly acknowledged frame, which may enter others, but takes in no acknowledgements. False
    /// when the numbers are impossible.
    template <typename Release>
    [[nodiscard]] bool acknowledged(std::uint32_t ack, std::span<const std::byte> sack, Release release);

    /// Calls `visit(Frame&)` for each frame that is not acknowledged, in the order of their numbers.
    template <typename Visit>
    void for_each_unacknowledged(Visit visit);

    // --- Receiving ---------------------------------------------------------------------------------------------------

    enum class Arrival : std::uint8_t { fresh, duplicate, impossible };

    /// Notes the arrival of frame `seq`.
    [[nodiscard]] Arrival arrived(std::uint32_t seq);
    /// The same, of one that is the next and the highest, as most are: else false, and arrived() is to be called.
    [[nodiscard]] bool arrived_next(std::uint32_t seq) noexcept {
        if (seq != highest_ || seq != received_.base()) return false;
        received_.skip();
        ++highest_;
        return true;
    }

    /// Whether a frame asks for nothing and is the next by both counts, while none is missing: then it is handed up at once,
    /// after took_next(). As most frames of messages are.
    [[nodiscard]] bool is_next(const FrameHeader& header) const noexcept {
        return (header.flags & ~frame_flag::stamped) == frame_flag::ordered && header.seq == highest_ &&
               header.order == expected_order_ && highest_ == received_.base() && held_count_ == 0;
    }
    void took_next() noexcept {
        received_.skip();
        ++highest_;
        held_.skip();
        ++expected_order_;
    }

    /// Hands an ordered frame up in its turn: calls `up(header, body)` for it and for those it was the last to hold up.
    /// A frame before its turn is copied and kept. False when its number is impossible.
    template <typename Up>
    [[nodiscard]] RAILMUX_IN_LINE bool in_order(const FrameHeader& header, std::span<const std::byte> body, Up up);

    // --- Acknowledging -----------------------------------------------------------------------------------------------

    /// Every frame before this one has arrived.
    [[nodiscard]] std::uint32_t ack() const noexcept { return received_.base(); }
    /// Whether any beyond it has.
    [[nodiscard]] bool missing() const noexcept { return highest_ != received_.base(); }
    /// Frames beyond ack() that have arrived, as bits; the bytes used of `sack`.
    [[nodiscard]] std::size_t write_sack(std::span<std::byte, max_sack_bytes> sack) const noexcept;

private:
    template <typename Up>
    void release_held(Up& up);
    [[nodiscard]] bool hold(const FrameHeader& header, std::span<const std::byte> body);

    FramePool& pool_;
    SequenceRing<Frame*> sent_;  // from the oldest unacknowledged frame
    std::uint32_t next_seq_ = 0;
    std::uint32_t heard_ = 0;
    std::uint32_t next_order_ = 0;

    SequenceRing<std::uint8_t> received_;  // from the oldest missing frame
    std::uint32_t highest_ = 0;            // one beyond the highest frame seen
    std::uint32_t expected_order_ = 0;
    std::uint32_t held_count_ = 0;
    SequenceRing<Frame*> held_;  // copies of ordered frames before their turn
};

template <typename Release>
bool Session::acknowledged(std::uint32_t ack, std::span<const std::byte> sack, Release release) {
    const auto done = ack - sent_.base();
    const auto outstanding = next_seq_ - sent_.base();
    constexpr auto half = ~std::uint32_t{0} / 2;
    const bool old = done > half;  // overtaken on another link: what it says beyond holds all the same
    if (done > outstanding && !old) return false;
    for (std::uint32_t i = 0; i < done && !old; ++i) {
        Frame* const frame = sent_.take_lowest();
        if (frame != nullptr) release(*frame);
        assert(sent_.base() == ack - done + i + 1);
    }
    for (std::uint32_t i = 0; i < sack.size() * 8; ++i) {
        if ((static_cast<unsigned>(sack[i / 8]) >> (i % 8) & 1U) == 0) continue;
        if (ack + i - sent_.base() > half) continue;
        if (ack + i - sent_.base() >= next_seq_ - sent_.base()) return false;
        auto& slot = sent_.at(ack + i);
        if (slot != nullptr) release(*std::exchange(slot, nullptr));
    }
    while (sent_.base() != next_seq_ && sent_.get(sent_.base()) == nullptr) sent_.pop();
    if (sent_.base() - heard_ <= half) heard_ = sent_.base();
    return true;
}

template <typename Visit>
void Session::for_each_unacknowledged(Visit visit) {
    for (auto seq = sent_.base(); seq != next_seq_; ++seq) {
        if (Frame* frame = sent_.get(seq); frame != nullptr) visit(*frame);
    }
}

template <typename Up>
RAILMUX_IN_LINE bool Session::in_order(const FrameHeader& header, std::span<const std::byte> body, Up up) {
    const auto distance = header.order - expected_order_;
    if (distance > 0) [[unlikely]]
        return distance < window && hold(header, body);
    ++expected_order_;
    held_.skip();
    up(header, body);
    if (held_count_ > 0) [[unlikely]]
        release_held(up);
    return true;
}

/// Those that the last one was the last to hold up.
template <typename Up>
[[gnu::noinline]] void Session::release_held(Up& up) {
    while (held_count_ > 0 && held_.get(expected_order_) != nullptr) {
        Frame* next = held_.get(expected_order_);
        held_.pop();
        ++expected_order_;
        --held_count_;
        up(*parse_header({next->data(), next->bytes}),
           std::span<const std::byte>(next->data() + FrameHeader::size, next->bytes - FrameHeader::size));
        pool_.give(next);
    }
}

}  // namespace railmux::rails

// RingWriter, RingReader: the two ends of one way of a Block (block.hpp says how a ring works).
//
// Threads: one thread each; the two may be in different processes.
// Lifetime: views of a Block.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "transports/shm/block.hpp"

namespace railmux::transports::shm {

[[nodiscard]] constexpr std::uint32_t lines_of(std::uint32_t bytes) noexcept {
    return (bytes + static_cast<std::uint32_t>(cache_line) - 1) / static_cast<std::uint32_t>(cache_line);
}

/// Fetches so many lines for this core alone, while it goes on. Compilers emit the instruction only for processors that have
/// said that they have it (to the others it is a nop), and drop calls that do nothing else.
inline void prefetch_to_write(const std::byte* at, std::uint32_t lines) noexcept {
    for (; lines > 0; --lines, at += cache_line) {
#if defined(__x86_64__)
        asm volatile("prefetchw %0" : : "m"(*at));
#else
        __builtin_prefetch(at, 1);
#endif
    }
}

/// Where in the data area the next bytes lie: in front of the last, or at its end if they do not fit there in one piece. Both
/// sides compute it from the sizes.
///
/// Processors fetch ahead of who reads or writes a few lines in a row. What they fetch there must not be what the other side
/// is about to write, or just reading: it would have to fetch it back, once more as long as a line takes to come over. So the
/// next bytes lie in front of the last, not behind them, and there is as much room between two as they take themselves, but for
/// large ones; and lines go in pairs, as processors fetch those.
class DataPlace {
public:
    [[nodiscard]] std::uint32_t of(std::uint32_t bytes) const noexcept {
        const auto lines = room_of(bytes);
        return (lines > at_ ? data_lines : at_) - lines;
    }
    /// Lines that they use up, those skipped at the beginning included.
    [[nodiscard]] std::uint32_t advance_by(std::uint32_t bytes) const noexcept {
        const auto lines = room_of(bytes);
        return lines > at_ ? at_ + lines : lines;
    }
    std::uint32_t advance(std::uint32_t bytes) noexcept {
        const auto lines = advance_by(bytes);
        at_ = of(bytes);
        return lines;
    }

private:
    [[nodiscard]] static constexpr std::uint32_t room_of(std::uint32_t bytes) noexcept {
        constexpr std::uint32_t most_apart = 16;   // no processor looks further ahead
        constexpr std::uint32_t apart_up_to = 40;  // lines: of more the way back is a small part
        const auto lines = lines_of(bytes);
        const auto apart = lines > apart_up_to ? 0 : std::min(lines, most_apart);
        return (lines + apart + 1) & ~std::uint32_t{1};
    }

    std::uint32_t at_ = data_lines;
};

class RingWriter {
public:
    RingWriter() = default;
    /// `strict`: see waking.hpp.
    RingWriter(Way& way, const Side& reader, bool strict) noexcept : way_(&way), reader_(&reader), strict_(strict) {}

    /// Where the body of the next slot goes; nullptr when there is no room that is known of.
    [[nodiscard]] std::byte* room() noexcept {
        return written_ - taken_ < slots ? way_->slot[written_ % slots].body.data() : nullptr;
    }
    /// The same; nullptr when the ring is full.
    [[nodiscard]] std::byte* next_body() noexcept {
        if (written_ - taken_ >= slots) [[unlikely]] {
            if (!look() || written_ - taken_ >= slots) return nullptr;
        }
        return way_->slot[written_ % slots].body.data();
    }
    /// Whether the ring takes so many more slots.
    [[nodiscard]] bool has_room(std::uint32_t more) noexcept {
        return slots - (written_ - taken_) >= more || (look() && slots - (written_ - taken_) >= more);
    }
    /// Where `bytes` (at most most_put_piece) of the next slot go in the data area; nullptr when there is no room.
    [[nodiscard]] std::byte* next_data(std::uint32_t bytes) noexcept {
        if (!fits(bytes)) [[unlikely]] {
            if (!look() || !fits(bytes)) return nullptr;
        }
        return way_->data.data() + place_.of(bytes) * cache_line;
    }
    /// Hands the next slot over, and so many bytes of the data area with it; both have room.
    void publish(Kind kind, std::uint32_t size, std::uint8_t flags, std::uint32_t in_data) noexcept {
        if (in_data > 0) data_written_ += place_.advance(in_data);
        const Head head{written_ + 1, static_cast<std::uint16_t>(size), kind, flags};
        auto& word = way_->slot[written_ % slots].head;
        if (strict_) {
            word.store(head.word(), std::memory_order_seq_cst);
        } else {
            word.store(head.word(), std::memory_order_release);
        }
        ++written_;
    }

    /// Fetches the place of the next bytes, if they are as many and have room, for this side to write: the reader has had it
    /// last. That takes as long as a line needs to come over, so it is done when nobody waits.
    void prepare(std::uint32_t bytes) noexcept {
        if (fits(bytes)) prefetch_to_write(way_->data.data() + place_.of(bytes) * cache_line, lines_of(bytes));
    }

    /// The same with the next slot. Its reader looks at it all the time, and fetches it back with its next look: so it must be
    /// written soon.
    void prepare_slot() const noexcept { prefetch_to_write(way_->slot[written_ % slots].body.data(), 1); }

    /// The same with the one after the one after that, in a burst. The next is looked at by the reader.
    void prepare_burst() const noexcept { prefetch_to_write(way_->slot[(written_ + 2) % slots].body.data(), 1); }

    /// Reads how far the reader is. False when it says what cannot be; see broken().
    bool look() noexcept {
        const auto word = reader_->taken.load(std::memory_order_seq_cst);
        const auto taken = static_cast<std::uint32_t>(word);
        const auto data = static_cast<std::uint32_t>(word >> 32);
        if (taken - taken_ > written_ - taken_ || data - data_taken_ > data_written_ - data_taken_) broken_ = true;
        if (broken_) return false;
        taken_ = taken;
        data_taken_ = data;
        return true;
    }
    [[nodiscard]] bool broken() const noexcept { return broken_; }
    [[nodiscard]] std::uint32_t written() const noexcept { return written_; }
    [[nodiscard]] std::uint32_t taken() const noexcept { return taken_; }  // by the last look

private:
    [[nodiscard]] bool fits(std::uint32_t bytes) const noexcept {
        return data_written_ - data_taken_ + place_.advance_by(bytes) <= data_lines;
    }

    Way* way_ = nullptr;
    const Side* reader_ = nullptr;
    std::uint32_t written_ = 0;  // slots, as the three below; all wrap around
    std::uint32_t taken_ = 0;
    std::uint32_t data_written_ = 0;  // lines, those skipped at the beginning included
    std::uint32_t data_taken_ = 0;
    DataPlace place_;
    bool strict_ = false;
    bool broken_ = false;
};

class RingReader {
public:
    RingReader() = default;
    RingReader(const Way& way, Side& own, bool strict) noexcept : way_(&way), own_(&own), strict_(strict) {}

    /// Whether there is a full slot. The order is for arm() (waking.hpp); elsewhere it costs nothing on x86.
    [[nodiscard]] bool ready(std::memory_order order = std::memory_order_acquire) const noexcept {
        return static_cast<std::uint32_t>(way_->slot[taken_ % slots].head.load(order)) == taken_ + 1;
    }
    /// The same of what head() was.
    [[nodiscard]] bool ready(const Head& head) const noexcept { return head.number == taken_ + 1; }
    /// Of the next slot, which says something if it is ready.
    [[nodiscard]] Head head() const noexcept {
        return Head::of(way_->slot[taken_ % slots].head.load(std::memory_order_acquire));
    }
    [[nodiscard]] const std::byte* body() const noexcept { return way_->slot[taken_ % slots].body.data(); }
    /// Where its bytes (at most most_put_piece) lie in the data area.
    [[nodiscard]] const std::byte* data(std::uint32_t bytes) const noexcept {
        return way_->data.data() + place_.of(bytes) * cache_line;
    }
    /// Done with it. The writer is told when a quarter of the ring has come together: the line that says so costs it as much
    /// as a message.
    [[nodiscard]] bool pop(std::uint32_t in_data) noexcept {
        ++taken_;
        if (in_data > 0) data_taken_ += place_.advance(in_data);
        return taken_ - told_ >= slots / 4 || data_taken_ - data_told_ >= data_lines / 4;
    }
    void tell() noexcept {
        told_ = taken_;
        data_told_ = data_taken_;
        const auto word = taken_ | std::uint64_t{data_taken_} << 32;
        if (strict_) {
            own_->taken.store(word, std::memory_order_seq_cst);
        } else {
            own_->taken.store(word, std::memory_order_release);
        }
    }

private:
    const Way* way_ = nullptr;
    Side* own_ = nullptr;
    std::uint32_t taken_ = 0;
    std::uint32_t told_ = 0;
    std::uint32_t data_taken_ = 0;
    std::uint32_t data_told_ = 0;
    DataPlace place_;
    bool strict_ = false;
};

}  // namespace railmux::transports::shm

// Block: the memory that the two processes of a link share: one ring for each way, and what each side tells the other.
//
// A ring is made of slots of one cache line. A slot's head, one word, is written last: it says by its number that the slot
// is full, so that a reader who waits for it looks at nothing else, and a small frame costs the one line that carries it. The
// number of a slot goes up by its ring's length each time round, so what an earlier round left behind is never taken for
// news, and nobody has to clear anything. More than a slot holds lies in the ring's data area, at a place that both sides
// compute from the sizes so far: no index or address in shared memory is ever used as one.
//
// Whatever stands here may have been written by anybody at any time, by a process that went mad or was killed in the middle:
// each word is read once, copied, and then judged.
//
// Memory of a link: 2 x (8 KiB + 28 KiB) + 512 B, in whole pages 76 KiB; of 100 peers 7.4 MiB.
//
// Threads: a way has one writer and one reader, in different processes; each field names who writes it.
// Lifetime: as the mapping it lies in. New shared memory is all zero, which is an empty Block.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace railmux::transports::shm {

inline constexpr std::size_t cache_line = 64;
inline constexpr std::uint32_t slots = 128;  // two windows of 64 small messages
inline constexpr std::uint32_t body_bytes = 56;
// As small as it may be, because it stays in the caches of both cores, and large enough for the default eager message
// (16 KiB), with a piece to spare for each side to work on.
inline constexpr std::uint32_t data_bytes = 28 * 1024;
inline constexpr std::uint32_t data_lines = data_bytes / cache_line;
// What goes into the data area at once, and the longest frame that is one piece: accepted or refused whole, it may be quiet.
// Both sides copy at the same time, each its own piece: a piece has to be small against the area, and large against the time
// that a line takes from core to core (150 ns, 2 KiB of copying).
inline constexpr std::uint32_t most_piece = 4096;
// Of a put, whose bytes nobody looks at before all of it is there. Long copies pay twice: from so many bytes on libraries copy
// by an instruction that takes lines over without reading them first, and each copy first waits for lines to come.
inline constexpr std::uint32_t most_put_piece = 8192;

enum class Kind : std::uint8_t {
    frame = 1,  // a whole frame in the slot's body
    piece,      // of a frame, in the data area; `last` with the last one
    put,        // a PutHead in the body, the bytes in the data area
    fetch,      // a FetchHead: the reader is to fetch the bytes from the writer's memory
};
enum : std::uint8_t { flag_last = 1, flag_notify = 2 };

/// The first word of a slot.
struct Head {
    std::uint32_t number = 0;
    std::uint16_t size = 0;
    Kind kind{};
    std::uint8_t flags = 0;

    [[nodiscard]] constexpr std::uint64_t word() const noexcept {
        return number | std::uint64_t{size} << 32 | std::uint64_t{static_cast<std::uint8_t>(kind)} << 48 |
               std::uint64_t{flags} << 56;
    }
    [[nodiscard]] static constexpr Head of(std::uint64_t word) noexcept {
        return {static_cast<std::uint32_t>(word), static_cast<std::uint16_t>(word >> 32),
                static_cast<Kind>(static_cast<std::uint8_t>(word >> 48)), static_cast<std::uint8_t>(word >> 56)};
    }
};

/// Each piece of a put tells it all, so that each is judged by itself: the region may be dropped between two of them.
struct PutHead {
    std::uint64_t key_id = 0;
    std::uint64_t key_secret = 0;
    std::uint64_t offset = 0;  // of this piece
    std::uint64_t left = 0;    // bytes of the put from there to its end
    std::uint32_t immediate = 0;
    std::uint32_t reserved = 0;
};
struct FetchHead {
    PutHead put;
    std::uint64_t address = 0;  // of this piece, in the writer's memory
    std::uint64_t bytes = 0;
};
static_assert(sizeof(FetchHead) <= body_bytes);

struct alignas(cache_line) Slot {
    std::atomic<std::uint64_t> head;
    std::array<std::byte, body_bytes> body;
};
static_assert(sizeof(Slot) == cache_line);

/// One way: written by the sending side.
struct Way {
    std::array<Slot, slots> slot;
    alignas(cache_line) std::array<std::byte, data_bytes> data;
};

enum class Sleep : std::uint32_t {
    awake,
    until_news,  // wake me when there is a slot for me
    until_room,  // or when you have taken something of mine
};

/// What one side asks the other to copy into its memory: a part of what it gets, while it fetches another. Whoever asks
/// writes it, but `word`, once it is open, is changed by both: the other side takes the share, and says when it is in place;
/// who asks takes it back if nobody has come. An open share is nothing but an offer, so nobody waits for a side that
/// computes, or sleeps.
struct alignas(cache_line) Share {
    enum State : std::uint64_t { none, open, taken, done, failed };
    static constexpr std::uint64_t states = 8;  // the word: a number times that, and the state

    std::atomic<std::uint64_t> word;
    std::atomic<std::uint64_t>
        key_id;  // of the region that it comes from, by the key that the other side has given out
    std::atomic<std::uint64_t> key_secret;
    std::atomic<std::uint64_t> offset;
    std::atomic<std::uint64_t> bytes;
    std::atomic<std::uint64_t> address;  // where it goes, in the memory of whoever asks

    /// The order is for arm() (waking.hpp); elsewhere it costs nothing on x86.
    [[nodiscard]] State state() const noexcept {
        return static_cast<State>(word.load(std::memory_order_seq_cst) % states);
    }
};
static_assert(sizeof(Share) == cache_line);

/// What one side tells: written by that side.
struct alignas(2 * cache_line) Side {  // two lines: processors fetch them in pairs
    // Of what the other side sent: slots taken (the low half), and lines of the data area (the high half).
    std::atomic<std::uint64_t> taken;
    alignas(cache_line) std::atomic<std::uint32_t> sleep;  // a Sleep; the other side resets it when it wakes this one
    std::atomic<std::uint32_t> can_fetch;                  // 1: the other side may send `fetch`
    std::atomic<std::uint32_t> fetching;                   // 1: this side reads the other's memory just now
    std::atomic<std::uint32_t> closed;                     // 1: nothing of this side's memory may be read any more
    std::atomic<std::uint32_t>
        fetch_from;  // bytes of a put from which on this side does better to fetch it; 0: not known
    std::atomic<std::uint32_t> try_apart;  // Ways::try_apart
    Share share;
};

struct Block {
    std::array<Way, 2> way;    // [0]: from the side that connected
    std::array<Side, 2> side;  // [0]: the one that connected
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(Block) == 2 * (slots * cache_line + data_bytes) + 8 * cache_line);
// The largest piece finds room though it has to skip the beginning, and the last quarter has not been told of.
static_assert(2 * most_put_piece / cache_line + data_lines / 4 <= data_lines);
static_assert(100 * ((sizeof(Block) + 4095) / 4096 * 4096) < 8 << 20);

}  // namespace railmux::transports::shm

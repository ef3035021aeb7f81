// Frame: what a session sends as one unit over one link; its wire header, and its form in memory until it is acknowledged.
//
// Threads: one engine at a time.
// Lifetime: a Frame belongs to the pool it came from; it returns there when it is both acknowledged and no longer
// posted to a rail.
//
// Wire header, little endian, 24 bytes, the same in every frame (docs/protocol.md):
//   0 u8  type      4 u32 seq     12 u32 consumed   20 u32 aux (bytes of
//   1 u8  flags     8 u32 ack     16 u32 order
//   2 u16 held                                        the message it stands for; in an ack: where its bits begin)
// held: for how long what `ack` newly acknowledges has been here, in units of 128 ns; the highest value means longer.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "sched/spread.hpp"
#include "transports/transport.hpp"

namespace railmux::rails {

/// The most of a message that is sent without being asked for: what the receiver may have to keep of it fits a frame of its
/// pool.
inline constexpr std::size_t largest_inlined = std::size_t{128} * 1024;
/// So much of that leaves by one call, if all of it goes over one link. It is what Linux hands to an interface as one packet,
/// with the headers of a few frames, where packets are as long as usual or jumbo ones: 64 KiB, less what begins them
/// (tcp_send_mss). A second call would take as long as the first. Networks that get little at a time, and encrypted links, cut
/// it.
inline constexpr std::uint32_t passed_at_once = 60 * 1024;

/// Frame types. Those up to `bye` are the session's own, the others are handed up.
enum class FrameType : std::uint8_t {
    proof = 1,        // first frame of a link: proves the job key. No sequence number
    ack = 2,          // acknowledges. No sequence number
    bye = 3,          // the sender's last frame
    closing = 4,      // the sender leaves, and closes this link in good order. No sequence number
    probe = 5,        // measures the link (model/probe_wire.hpp). No sequence number, as the next two
    probe_reply = 6,  // answers a train of those
    model = 7,        // what came out
    lost = 8,         // another link died at the sender's end: u64, the nonce of its hello. No sequence number
    settle = 9,  // the same, and the other side is to answer when the link is over at its end, too. No sequence number
    settled = 10,       // it is: what has come by then. No sequence number
    address = 11,       // where the sender is now: its ProcessAddress
    probe_memory = 12,  // where the puts of probes may go (model/probe_wire.hpp). No sequence number
    eager = 16,         // message with its payload
    rts = 17,           // "ready to send": the header of a message whose payload stays behind
    cts = 18,           // "clear to send": where the payload may be put
    fin = 19,           // closes one put of bulk
    fin_ack = 20,       // closes what was got of a message: its source is no longer read
    inlined = 21,       // of the first bytes of the message that an rts before it announced
    bundle = 22,        // several small messages with their payloads (messaging/bundle.hpp)
    // One-sided operations (messaging/one_sided_wire.hpp): what is asked, and the answers.
    put = 32,
    get = 33,
    atomic = 34,
    put_request = 35,  // large: cts and fins follow
    get_request = 36,  // large: fins answer it
    got = 37,
    results = 38,
};

/// Whether there is such a type: what comes from others may be anything.
[[nodiscard]] constexpr bool is_frame_type(FrameType type) noexcept {
    constexpr auto some = [](FrameType first, FrameType last) {
        const auto below = [](FrameType limit) { return std::uint64_t{1} << static_cast<unsigned>(limit); };
        return (below(last) << 1) - below(first);
    };
    constexpr std::uint64_t all = some(FrameType::proof, FrameType::probe_memory) |
                                  some(FrameType::eager, FrameType::bundle) | some(FrameType::put, FrameType::results);
    const auto number = static_cast<unsigned>(type);
    return number < 64 && (all >> number & 1) != 0;
}

namespace frame_flag {
inline constexpr std::uint8_t ordered = 1;  // delivered in `order`
inline constexpr std::uint8_t ack_now = 2;  // the sender waits for this acknowledgement
inline constexpr std::uint8_t denied = 4;   // fin: its put was not allowed, and is not there
inline constexpr std::uint8_t behind = 8;   // whoever sends it has not kept up with what comes in lately. Stamped
inline constexpr std::uint8_t timed = 16;   // asks when it comes, at once and over the same link; an ack: says it
// Two bits: how whoever sends it spreads heavy frames over rails (sched::Spread). Stamped.
inline constexpr std::uint8_t spread = 96;
inline constexpr std::uint8_t spread_shift = 5;
inline constexpr std::uint8_t stamped = behind | spread;
inline constexpr std::uint8_t all = ordered | ack_now | denied | timed | stamped;
}  // namespace frame_flag

/// Frames without a number that the other side has asked for: nothing but their queue bounds how many wait.
[[nodiscard]] constexpr bool is_answer(FrameType type, std::uint8_t flags) noexcept {
    return type == FrameType::probe_reply || type == FrameType::probe_memory || type == FrameType::settled ||
           (type == FrameType::ack && (flags & frame_flag::timed) != 0);
}

inline constexpr std::uint64_t held_unit = 128;
inline constexpr base::Nanoseconds held_longest = held_unit * 0xffff;

struct FrameHeader {
    static constexpr std::size_t size = 24;

    FrameType type{};
    std::uint8_t flags = 0;
    base::Nanoseconds held = 0;  // held_longest: that or more
    std::uint32_t seq = 0;       // reliability: each frame of a session once; wraps around
    std::uint32_t ack = 0;       // every frame before this number has arrived
    std::uint32_t consumed = 0;  // flow control: credit units of eager data taken by the application so far
    std::uint32_t order = 0;     // matching: position among the ordered frames
    std::uint32_t aux = 0;
};

/// What stands in FrameHeader::size bytes, whatever it is.
[[nodiscard]] inline FrameHeader read_header(const std::byte* at) noexcept {
    return {.type = static_cast<FrameType>(at[0]),
            .flags = static_cast<std::uint8_t>(at[1]),
            .held = static_cast<base::Nanoseconds>(base::load<std::uint16_t>(at + 2) * held_unit),
            .seq = base::load<std::uint32_t>(at + 4),
            .ack = base::load<std::uint32_t>(at + 8),
            .consumed = base::load<std::uint32_t>(at + 12),
            .order = base::load<std::uint32_t>(at + 16),
            .aux = base::load<std::uint32_t>(at + 20)};
}

/// The header at the front of `bytes`, or nothing when it is short or malformed. Only shape is checked here; numbers are
/// checked against the session's state.
[[nodiscard]] inline std::optional<FrameHeader> parse_header(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < FrameHeader::size) return std::nullopt;
    const auto header = read_header(bytes.data());
    if (!is_frame_type(header.type) || (header.flags & ~frame_flag::all) != 0) return std::nullopt;
    return header;
}

inline void write_header(std::byte* to, const FrameHeader& header) noexcept {
    to[0] = static_cast<std::byte>(header.type);
    to[1] = static_cast<std::byte>(header.flags);
    base::store(to + 2, std::uint16_t{0});
    base::store(to + 4, header.seq);
    base::store(to + 8, header.ack);
    base::store(to + 12, header.consumed);
    base::store(to + 16, header.order);
    base::store(to + 20, header.aux);
}

[[nodiscard]] inline sched::Spread spread_of(const FrameHeader& header) noexcept {
    return static_cast<sched::Spread>((header.flags & frame_flag::spread) >> frame_flag::spread_shift);
}

/// The fields that are known only when a frame goes out.
struct Stamp {
    Stamp() noexcept = default;
    Stamp(std::uint32_t ack_, std::uint32_t consumed_, base::Nanoseconds held_, bool behind,
          sched::Spread spread) noexcept
        : flags(std::byte{behind ? frame_flag::behind : std::uint8_t{0}} | std::byte{static_cast<std::uint8_t>(spread)}
                                                                               << frame_flag::spread_shift),
          held(static_cast<std::uint16_t>(
              static_cast<std::uint64_t>(std::clamp<base::Nanoseconds>(held_, 0, held_longest)) / held_unit)),
          ack(ack_),
          consumed(consumed_) {}
    void put_on(std::byte* frame) const noexcept {
        frame[1] = (frame[1] & ~std::byte{frame_flag::stamped}) | flags;  // it may go out again
        base::store(frame + 2, held);
        base::store(frame + 8, ack);
        base::store(frame + 12, consumed);
    }

    std::byte flags{0};
    std::uint16_t held = 0;
    std::uint32_t ack = 0;
    std::uint32_t consumed = 0;
};

/// Both at once, for a frame that is about to go out: a word at a time.
inline void write_header(std::byte* to, const FrameHeader& header, const Stamp& stamp) noexcept {
    const auto flags = static_cast<std::uint8_t>(header.flags | static_cast<std::uint8_t>(stamp.flags));
    base::store(to, static_cast<std::uint64_t>(header.type) | std::uint64_t{flags} << 8 |
                        std::uint64_t{stamp.held} << 16 | std::uint64_t{header.seq} << 32);
    base::store(to + 8, stamp.ack | std::uint64_t{stamp.consumed} << 32);
    base::store(to + 16, header.order | std::uint64_t{header.aux} << 32);
}

/// For a frame whose flags change after it has been numbered.
inline void stamp_flags(std::byte* to, std::uint8_t flags) noexcept { to[1] = static_cast<std::byte>(flags); }
inline void add_flag(std::byte* to, std::uint8_t flag) noexcept { to[1] |= std::byte{flag}; }

/// Where bulk of one message may be put, or got from: the peer's region, by the peer's rail.
struct BulkTarget {
    struct Key {
        std::uint8_t rail = 0;  // the peer's number for its rail
        transports::RegionKey key;
        bool reserve = false;  // for when no link that the others are for is left
    };
    std::span<const Key> keys;

    [[nodiscard]] const Key* find(std::uint8_t rail) const noexcept {
        for (const auto& entry : keys) {
            if (entry.rail == rail) return &entry;
        }
        return nullptr;
    }
    [[nodiscard]] const transports::RegionKey* key_for(std::uint8_t rail) const noexcept {
        const auto* entry = find(rail);
        return entry == nullptr ? nullptr : &entry->key;
    }
};

inline constexpr std::uint32_t no_link = ~std::uint32_t{0};

struct Frame;

/// What a frame has in memory only: one cache line, in front of the frame's header and payload, so that of a small message
/// two lines are touched while it waits to be acknowledged. Cleared when the frame is used anew. In an order without gaps.
struct alignas(64) FrameState {
    Frame* next = nullptr;  // in an outbox, a free list or a waiting list: one at a time
    FrameType type{};       // set by whoever makes the frame, with flags and aux
    std::uint8_t flags = 0;
    std::uint8_t rail = 0;         // of the link that it went to
    std::uint8_t posted = 0;       // of its works (put if any, then send) how many the rail has taken this time
    std::uint8_t undone = 0;       // taken works that have not been `done`
    std::uint8_t piece_count = 0;  // of FrameBulk; 0: no put

    bool queued = false;  // in an outbox
    bool acked = false;
    bool charged = false;        // it counts as being on its link
    bool alone = false;          // nothing was on its link when it was handed over, nor of others on its rail
    bool unaccompanied = false;  // the flush comes before other frames do
    // What is rare shares a byte.
    bool abandoned : 1 = false;  // acked, but only because its session ended: it may or may not have arrived
    bool again : 1 = false;      // the link that it went to first died
    bool parked : 1 = false;     // waits until it is settled what has come over the link that it went to
    bool gets : 1 = false;       // its pieces are got, not put, and that is all: it is never sent, and has no number
    bool denied : 1 = false;     // its put is not allowed: what follows goes without
    bool summed : 1 = false;     // put_sum is that of what is being put

    std::uint32_t predicted = 0;  // its delivery after `sent`, in ns, at most 4 s; 0: it is not one of those compared
    std::uint32_t aux = 0;
    std::uint32_t bytes = 0;  // header and payload
    std::uint32_t seq = 0;
    std::uint32_t link = no_link;  // slot in the link table of the link it went to
    std::uint32_t payload = 0;     // application bytes it stands for, puts included up to 4 GiB - 1
    std::uint32_t capacity = 0;    // room behind the frame for header and payload
    std::uint64_t token = 0;       // the owner's; not 0: the owner is told when the frame is released
    base::Nanoseconds sent = 0;    // when it was handed to a link, last
};
static_assert(sizeof(FrameState) == 64);

/// Bulk in front of the frame: its pieces are put, then the frame is sent on the same link. Where there is none it may be
/// anything, and most frames never touch it.
struct FrameBulk {
    // Four pieces let a put run over the seams of a gather list; finer lists need more puts.
    static constexpr std::size_t max_pieces = 4;

    std::array<transports::Segment, max_pieces> pieces;  // the first `piece_count`
    const BulkTarget* target;                            // lives until the frame is acknowledged
    std::uint64_t put_offset;
    std::uint32_t put_sum;         // checksum of the bytes of its put
    std::uint8_t registered_with;  // the rail whose regions the pieces name, if they do
};

/// A frame in memory. Allocated with `capacity` bytes behind it for header and payload, and room for checksums.
struct Frame : FrameBulk, FrameState {
    [[nodiscard]] std::span<const transports::Segment> put() const noexcept { return {pieces.data(), piece_count}; }
    /// Regions are one rail's: for another one the pieces are memory like any other.
    void for_rail(std::uint32_t number) noexcept {
        if (registered_with == number) return;
        for (auto& piece : std::span(pieces).first(piece_count)) piece.region = 0;
    }
    [[nodiscard]] std::uint64_t unregistered_bytes() const noexcept {
        std::uint64_t sum = 0;
        for (const auto& piece : put()) sum += piece.region == 0 ? piece.size : 0;
        return sum;
    }
    /// It goes without its put, and says so. Of a frame that is on no link, or in its outbox.
    void drop_put() noexcept {
        piece_count = 0;
        payload = 0;
        summed = false;
        flags |= frame_flag::denied;
        stamp_flags(data(), flags);
    }
    [[nodiscard]] std::uint8_t works() const noexcept { return piece_count == 0 || gets ? 1 : 2; }

    /// What it puts on the wire, its put included.
    [[nodiscard]] std::uint64_t wire_bytes() const noexcept { return bytes + (piece_count > 0 ? payload : 0); }

    [[nodiscard]] std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
    [[nodiscard]] const std::byte* data() const noexcept { return reinterpret_cast<const std::byte*>(this + 1); }
};

/// First in, first out, linked through Frame::next. Owns nothing.
class FrameQueue {
public:
    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
    [[nodiscard]] Frame* front() const noexcept { return head_; }
    /// nullptr: it is empty.
    [[nodiscard]] Frame* back() const noexcept { return head_ == nullptr ? nullptr : tail_; }
    void push(Frame* frame) noexcept {
        frame->next = nullptr;
        (head_ == nullptr ? head_ : tail_->next) = frame;
        tail_ = frame;
    }
    Frame* pop() noexcept {
        Frame* frame = head_;
        head_ = frame->next;
        frame->next = nullptr;
        return frame;
    }
    /// The first of those that `wanted`, out of the queue; nullptr: there is none.
    template <typename Wanted>
    Frame* take(Wanted wanted) noexcept {
        Frame* before = nullptr;
        for (Frame* frame = head_; frame != nullptr; before = frame, frame = frame->next) {
            if (!wanted(*frame)) continue;
            if (before == nullptr) return pop();
            before->next = frame->next;
            if (tail_ == frame) tail_ = before;
            frame->next = nullptr;
            return frame;
        }
        return nullptr;
    }

private:
    Frame* head_ = nullptr;
    Frame* tail_ = nullptr;
};

}  // namespace railmux::rails

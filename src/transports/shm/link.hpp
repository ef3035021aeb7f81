// Link: one connection of a shm rail: its socket, the shared memory, and what it has under way in both directions.
//
// Threads and lifetime: part of its rail.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "transports/shm/costs.hpp"
#include "transports/shm/memory.hpp"
#include "transports/shm/other_process.hpp"
#include "transports/shm/ring.hpp"
#include "transports/shm/ways.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::shm {

inline constexpr std::size_t max_segments = 16;

enum class LinkPhase : std::uint8_t {
    free,
    connecting,  // hello sent
    greeting,    // accepted; waiting for the hello
    requested,   // hello handed up; waiting for accept or refuse
    up,
    ending,  // over, but the other side is still at the memory of our works: they end when it has stopped
};

/// The bytes of a work that have not been copied yet.
class Source {
public:
    Source() = default;
    explicit Source(std::span<const Segment> segments) noexcept : segments_(segments) {
        for (const auto& segment : segments) left_ += segment.size;
    }
    [[nodiscard]] std::size_t left() const noexcept { return left_; }
    /// `bytes` of them, at most left().
    void copy(std::byte* to, std::size_t bytes) noexcept;
    /// The next of them that lie in one piece, at most so many.
    [[nodiscard]] std::span<std::byte> front(std::size_t most) noexcept;
    /// So many of those are copied.
    void skip(std::size_t bytes) noexcept;
    /// The same with a list of segments that lasts: `kept`.
    [[nodiscard]] Source in(std::span<Segment> kept) const noexcept;

private:
    std::span<const Segment> segments_;
    std::size_t used_ = 0;  // of the first
    std::size_t left_ = 0;
};

/// A work of which the ring has taken a part. At most one a link: the next is refused until this one is in it.
struct PartialWork {
    Op op{};
    bool notify = false;
    std::uint64_t cookie = 0;
    PutHead put;
    Source source;
    std::array<Segment, max_segments> segments;
};

/// Works that the other side fetches from our memory, in order.
class FetchedWorks {
public:
    static constexpr std::uint32_t most = 32;
    struct One {
        std::uint64_t cookie = 0;
        std::uint32_t last_slot = 0;  // as RingWriter::written() after it
    };
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    [[nodiscard]] bool full() const noexcept { return count_ == most; }
    [[nodiscard]] const One& front() const noexcept { return ones_[first_]; }
    void push(const One& one) noexcept { ones_[(first_ + count_++) % most] = one; }
    void pop() noexcept {
        first_ = (first_ + 1) % most;
        --count_;
    }

private:
    std::array<One, most> ones_;
    std::uint32_t first_ = 0;
    std::uint32_t count_ = 0;
};

/// What is got from the other side's memory, in order; and how the oldest goes on: in turns, of which the other side may take
/// a share (Share).
struct Gets {
    static constexpr std::uint32_t most = 4;
    struct One {
        std::uint64_t cookie = 0;
        RegionKey key;
        std::uint64_t offset = 0;  // of what is left
        Source source;
        std::array<Segment, max_segments> segments;
    };
    std::array<One, most> ones;
    std::uint32_t first = 0;
    std::uint32_t count = 0;

    std::span<std::byte> ours;    // in this turn
    std::span<std::byte> theirs;  // behind it; empty: nothing is shared
    bool here = false;            // ours
    WorkStatus status = WorkStatus::ok;
    std::uint64_t number = 0;     // of the last share
    base::Nanoseconds begun = 0;  // the turn; 0: it is not timed

    [[nodiscard]] One& oldest() noexcept { return ones[first]; }
};

/// A frame that comes in several pieces.
struct Assembly {
    std::unique_ptr<std::byte[]> bytes;  // none: no frame has begun
    std::size_t size = 0;
};

/// What the other side asked us to fetch.
struct Fetch {
    FetchHead head;
    std::uint8_t flags = 0;
    std::uint64_t done = 0;
};

/// Of a put that comes in pieces.
struct PutTimer {
    bool inside = false;          // there are more to come
    base::Nanoseconds begun = 0;  // when the first was here; 0: it is not timed
    std::uint64_t bytes = 0;      // since

    /// So long nobody looked at the ring: in a stream, a put that tries it comes between messages that are got, and would seem
    /// to take as long as they do.
    void pause(base::Nanoseconds time) noexcept {
        if (begun != 0) begun += time;
    }
};

struct Link {
    LinkPhase phase = LinkPhase::free;
    LinkId id;
    base::FileDescriptor socket;
    base::FileDescriptor bell;  // the other side's eventfd
    OtherProcess process;
    SharedBlock block;
    Mapping shown;  // its board, to be read; nothing: it cannot be got from
    Side* ours = nullptr;
    Side* theirs = nullptr;
    RingWriter writer;
    RingReader reader;
    std::string label;
    base::Nanoseconds since = 0;       // of a stranger
    bool strict = false;               // as the other side told
    bool readable = false;             // its memory, by us
    Ways ways;                         // of what comes in; the other side is told
    PutTimer put_timer;                // of what comes out of the ring
    std::uint32_t written_before = 0;  // slots, when something came last
    Trying trying;                     // of what goes out
    bool by_ring = false;              // with the next large put, as it was not offered for that

    // What poll has to see to, beside slots that come in.
    bool restless = false;  // any of these:
    bool hung_up = false;   // the other side has gone; what it left in the ring is still taken
    PartialWork partial;
    FetchedWorks fetched;
    std::unique_ptr<Gets> gets;  // none: there never was one
    std::uint64_t declined = 0;  // the share that it offers, and that may not be copied: nothing to stay awake for

    std::uint16_t undone = 0;          // works accepted whose `done` has not been handed out
    bool refused = false;              // a work; whoever sleeps then waits for room
    std::uint32_t refused_at = 0;      // what the other side had taken by then
    std::uint32_t last_slots = slots;  // that may still be taken, hung up: more cannot be in the ring
    Assembly assembly;
    std::optional<Fetch> fetch;
    bool put_denied = false;  // a piece of the put that is coming in was discarded
    bool complained = false;  // about that
    std::string cause;        // ending

    void settle_restless() noexcept {
        restless = hung_up || phase == LinkPhase::ending || partial.source.left() > 0 || !fetched.empty() || getting();
    }
    [[nodiscard]] bool getting() const noexcept { return gets != nullptr && gets->count > 0; }
    [[nodiscard]] const Board* board() const noexcept { return static_cast<const Board*>(shown.get()); }
    /// Whether something waits for the other side to take what is in the ring, or to be done with its share.
    [[nodiscard]] bool waits_for_room() const noexcept {
        return refused || phase == LinkPhase::ending || partial.source.left() > 0 || !fetched.empty() || getting();
    }
};

}  // namespace railmux::transports::shm

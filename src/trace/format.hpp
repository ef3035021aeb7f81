// The trace file: what was decided about each frame, and what came of it. Written by one process for itself, little endian;
// docs/trace.md says how to look at it.
//
//   "RMXTRACE", u32 version, u32 length of the header that follows, header, records
//   header: u32 rank, u32 pid, u64 monotonic ns, u64 wall clock ns (of the same moment), text host, text policy,
//           u16 rails, for each: text name, u64 bits per second
//
// A record begins with its kind. What a decision refers to stands before it: peers by their names, links by their costs.
//
// Threads: values and pure functions.
// Lifetime: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "sched/ticks.hpp"

namespace railmux::trace {

inline constexpr std::string_view magic = "RMXTRACE";
inline constexpr std::uint32_t version = 1;
inline constexpr std::uint32_t no_rank = ~std::uint32_t{0};
inline constexpr std::size_t longest_name = 255;
inline constexpr std::size_t most_rails = 64;

// Ten seconds in ticks: longer than any latency or gap of a network, or the time of a byte, and far from what does not fit
// when many add up. A recorder writes less.
inline constexpr std::int64_t costliest = sched::to_ticks(10 * base::second);

struct RailName {
    std::string name;
    std::uint64_t speed_bps = 0;
};

struct Header {
    std::uint32_t rank = no_rank;
    std::uint32_t pid = 0;
    base::Nanoseconds started = 0;  // monotonic, as all times of records
    base::Nanoseconds wall = 0;     // the same moment since 1970, to lay files of several hosts side by side
    std::string host;
    std::string policy;
    std::vector<RailName> rails;
};

/// Magic, version, length and header.
[[nodiscard]] std::vector<std::byte> encode(const Header& header);

enum class Kind : std::uint8_t { peer = 1, link = 2, offer = 3, decision = 4, acknowledged = 5 };

/// A name for the peer's number; so many bytes follow.
struct PeerRecord {
    Kind kind = Kind::peer;
    std::uint8_t zero = 0;
    std::uint16_t name_bytes = 0;
    std::uint32_t peer = 0;
};

/// What the number of a link means from here on, and its cost, in ticks (sched/policy.hpp), at most `costliest`.
struct LinkRecord {
    Kind kind = Kind::link;
    std::uint8_t rail = 0;         // local
    std::uint8_t remote_rail = 0;  // the peer's number
    std::uint8_t zero = 0;
    std::uint32_t link = 0;
    std::uint32_t peer = 0;
    std::uint32_t zero2 = 0;
    std::int64_t latency = 0;
    std::int64_t slope = 0;
    std::int64_t gap = 0;
    std::int64_t per_byte = 0;
};

/// A large message may go: its pieces are decided about one by one.
struct OfferRecord {
    Kind kind = Kind::offer;
    std::uint8_t zero = 0;
    std::uint16_t zero2 = 0;
    std::uint32_t peer = 0;
    std::uint64_t message = 0;  // as in its pieces; never 0
    std::uint64_t bytes = 0;
    std::uint64_t time = 0;
};

namespace decision_flag {
inline constexpr std::uint8_t again = 1;  // its link died before it was acknowledged, and it goes once more
inline constexpr std::uint8_t all = again;
}  // namespace decision_flag

inline constexpr std::uint16_t no_option = 0xffff;

/// A frame, or a piece of a large message, is handed to a link. So many options follow.
struct DecisionRecord {
    Kind kind = Kind::decision;
    std::uint8_t flags = 0;
    std::uint16_t options = 0;
    std::uint16_t choice = 0;
    std::uint8_t type = 0;  // of the frame, as on the wire (docs/protocol.md)
    std::uint8_t zero = 0;
    std::uint32_t peer = 0;
    std::uint32_t seq = 0;  // names the frame until it is acknowledged
    std::uint64_t time = 0;
    std::uint64_t message = 0;         // of a piece; 0: a frame of its own
    std::uint32_t bytes = 0;           // with headers
    std::uint16_t recent = no_option;  // the option that the peer used last, where that counted
    std::uint16_t zero2 = 0;
};

/// A link that could have carried it.
struct OptionRecord {
    std::uint32_t link = 0;
    std::uint32_t predicted_ns = 0;  // delivery after the decision; the highest value: that or more
    std::uint32_t backlog = 0;       // bytes handed to its rail and not acknowledged; the highest value: that or more
    std::uint32_t claimed = 0;       // bytes planned for the link and not handed over yet; likewise
};

namespace acknowledged_flag {
inline constexpr std::uint8_t held_known = 1;  // `back_ns` has the time for which the other side held it back
inline constexpr std::uint8_t complete = 2;    // it told of everything that had arrived
inline constexpr std::uint8_t all = held_known | complete;
}  // namespace acknowledged_flag

/// The newest frame of the acknowledgement arrived `back_ns` before `time`, this one not later.
struct AcknowledgedRecord {
    Kind kind = Kind::acknowledged;
    std::uint8_t flags = 0;
    std::uint16_t zero = 0;
    std::uint32_t peer = 0;
    std::uint32_t seq = 0;
    std::uint32_t back_ns = 0;
    std::uint64_t time = 0;
};

// The file has them as they are in memory: no padding, and little endian as base/bytes.hpp demands.
static_assert(std::has_unique_object_representations_v<PeerRecord> && sizeof(PeerRecord) == 8);
static_assert(std::has_unique_object_representations_v<LinkRecord> && sizeof(LinkRecord) == 48);
static_assert(std::has_unique_object_representations_v<OfferRecord> && sizeof(OfferRecord) == 32);
static_assert(std::has_unique_object_representations_v<DecisionRecord> && sizeof(DecisionRecord) == 40);
static_assert(std::has_unique_object_representations_v<OptionRecord> && sizeof(OptionRecord) == 16);
static_assert(std::has_unique_object_representations_v<AcknowledgedRecord> && sizeof(AcknowledgedRecord) == 24);

/// "eager", "rts", ...: what a frame of that type is called in docs/protocol.md; a fin stands for its piece.
[[nodiscard]] std::string_view frame_name(std::uint8_t type) noexcept;

/// The file for this process: %p is its pid, %r its rank (0 outside a job), %% a %. In a job a pattern with neither gets the
/// rank behind a dot, so that processes do not overwrite each other's. Throws Error(invalid_config) at another %.
[[nodiscard]] std::string expand_path(std::string_view pattern, std::uint32_t rank, std::uint32_t pid);

}  // namespace railmux::trace

// Bodies of the frames of messaging, and the credit they cost. Layouts are little endian and listed in docs/protocol.md.
//
// Threads: pure functions over values.
// Lifetime: parsed views point into the frame they came from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rails/frame.hpp"

namespace railmux::messaging {

/// A slot in one of the tables of the process that made it; the other side only hands it back.
struct Handle {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;
    friend constexpr bool operator==(Handle, Handle) noexcept = default;
};

/// eager: u64 tag, payload.
struct EagerBody {
    static constexpr std::size_t size = 8;
    std::uint64_t tag = 0;
    std::span<const std::byte> payload;
};

/// rts: u64 tag, u64 bytes, handle of the sender, u32 count, u32 bytes that follow in frames `inlined`, which are just them,
/// count x {u64 rail, u64 id, u64 secret}: where to get it from.
struct RtsBody {
    static constexpr std::size_t size = 32;
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
    Handle sender;
    std::uint32_t inlined = 0;  // of those, the first ones; if all, no answer is wanted
    [[nodiscard]] bool whole() const noexcept { return inlined > 0 && inlined == bytes; }
};

/// cts: handle of the sender, handle of the receiver, u64 bytes wanted in all, u64 offset, u64 bytes: that part is to be put;
/// u64 flags (1: the receiver would rather have got it; 2: it leaves, and takes nothing any more), u64 count, count keys as
/// in rts.
struct CtsBody {
    static constexpr std::size_t size = 56;
    Handle sender;
    Handle receiver;
    std::uint64_t wanted = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    bool would_get = false;
    bool leaves = false;
};

/// fin: handle of the receiver, u64 offset, u64 bytes: that part of the message is in its place.
struct FinBody {
    static constexpr std::size_t size = 24;
    Handle receiver;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// fin_ack: handle of the sender, u64 bytes wanted in all, u64 bytes that were got: the source of these is no longer read.
struct FinAckBody {
    static constexpr std::size_t size = 24;
    Handle sender;
    std::uint64_t wanted = 0;
    std::uint64_t bytes = 0;
};

[[nodiscard]] Handle read_handle(base::Reader& in) noexcept;
void store_handle(std::byte* to, Handle handle) noexcept;
/// A count and so many keys, which must be all that is left. False when malformed.
[[nodiscard]] bool read_keys(base::Reader& in, std::vector<rails::BulkTarget::Key>& keys);
void store_keys(std::byte* to, std::span<const rails::BulkTarget::Key> keys) noexcept;
/// Bytes of a key in a list; the list begins with 8 more.
inline constexpr std::size_t bulk_key_size = 24;

[[nodiscard]] inline std::optional<EagerBody> parse_eager(std::span<const std::byte> body) noexcept {
    if (body.size() < EagerBody::size) return std::nullopt;
    return EagerBody{base::load<std::uint64_t>(body.data()), body.subspan(EagerBody::size)};
}
/// Puts the keys into `keys`, whose old content goes; so do the others.
[[nodiscard]] std::optional<RtsBody> parse_rts(std::span<const std::byte> body,
                                               std::vector<rails::BulkTarget::Key>& keys);
[[nodiscard]] std::optional<CtsBody> parse_cts(std::span<const std::byte> body,
                                               std::vector<rails::BulkTarget::Key>& keys);
[[nodiscard]] std::optional<FinBody> parse_fin(std::span<const std::byte> body) noexcept;
[[nodiscard]] std::optional<FinAckBody> parse_fin_ack(std::span<const std::byte> body) noexcept;

void write_rts(std::byte* to, const RtsBody& body, std::span<const rails::BulkTarget::Key> keys) noexcept;
void write_cts(std::byte* to, const CtsBody& body, std::span<const rails::BulkTarget::Key> keys) noexcept;
void write_fin(std::byte* to, const FinBody& body) noexcept;
void write_fin_ack(std::byte* to, const FinAckBody& body) noexcept;

/// The largest payload in a frame, which every rail must take: `eager.max` can be no more.
inline constexpr std::size_t largest_small = std::size_t{16} * 1024;

/// What goes without being asked for is cut into so many equal frames: as many for each of the links that may carry them, but
/// not into smaller ones than this for that.
inline constexpr std::size_t least_inlined_frame = 4096;
[[nodiscard]] constexpr std::uint32_t inlined_frames(std::uint64_t bytes, std::uint32_t links) noexcept {
    const auto least = (bytes + largest_small - 1) / largest_small;
    const auto across = std::max<std::uint64_t>(links, 1);
    const auto even = (least + across - 1) / across * across;
    return static_cast<std::uint32_t>(std::max(least, std::min(even, bytes / least_inlined_frame)));
}
inline constexpr std::size_t most_inlined_frames = rails::largest_inlined / least_inlined_frame;

/// Credit is counted in units of 64 bytes: one for the message itself, the others for its payload. That is about what an
/// unexpected message costs the receiver to keep.
inline constexpr std::size_t credit_unit = 64;

[[nodiscard]] constexpr std::uint32_t credit_of(std::size_t payload) noexcept {
    return static_cast<std::uint32_t>(1 + (payload + credit_unit - 1) / credit_unit);
}

/// How the payload of a rendezvous moves where a rail can do both (parameter bulk.scheme): put by the sender, got by the
/// receiver, or whichever is known to cost less.
enum class Scheme : std::uint8_t { automatic, write, read };

/// Whether the first bytes of a rendezvous follow its announcement (parameter bulk.inlined): where that is known to save time,
/// or whenever there is credit for them.
enum class Inlining : std::uint8_t { automatic, always, never };

/// A message that leaves its payload behind costs the receiver its header only, and what is inlined.
inline constexpr std::uint32_t rts_credit = credit_of(0);

}  // namespace railmux::messaging

// Link: an agreement with another endpoint, by messages of our own: what each side calls it, and how far both have counted.
//
// Threads and lifetime: part of its rail.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "transports/ofi/buffers.hpp"
#include "transports/ofi/peers.hpp"
#include "transports/ofi/wire.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::ofi {

inline constexpr std::size_t max_segments = 8;
inline constexpr std::uint32_t tx_depth = 64;     // works accepted and not handed out as done
inline constexpr std::uint32_t max_sending = 32;  // messages of a link that the provider has
inline constexpr std::size_t max_sending_bytes = 2 << 20;
inline constexpr std::uint32_t largest_put = 1 << 20;
// Early messages of a link: what is under way behind a large one that takes its time. Beyond that the large one is lost.
inline constexpr std::size_t most_early = 1024;
inline constexpr std::size_t most_early_bytes = 4 << 20;
static_assert(most_early_bytes > max_sending_bytes + fetched_piece_bytes);

enum class Phase : std::uint8_t {
    free,
    greeting,   // hello on its way, or there; waiting for the answer
    requested,  // hello handed up; waiting for accept or refuse
    up,
};

/// The bytes of a work, from the first not sent on.
struct Source {
    std::array<Segment, max_segments> segments{};
    std::size_t count = 0;
    std::size_t left = 0;
    std::size_t at = 0;      // the segment ...
    std::size_t offset = 0;  // ... and the place in it

    explicit Source(const Work& work) noexcept {
        for (const auto& segment : work.segments) {
            segments[count++] = segment;
            left += segment.size;
        }
    }
    Source() noexcept = default;

    /// Takes the next `bytes` of them, which there must be.
    void copy(std::byte* to, std::size_t bytes) noexcept {
        left -= bytes;
        while (bytes > 0) {
            const auto& segment = segments[at];
            const auto part = std::min(bytes, segment.size - offset);
            base::copy(to, segment.data + offset, part);
            to += part;
            bytes -= part;
            offset += part;
            if (offset == segment.size) {
                ++at;
                offset = 0;
            }
        }
    }
};

/// A put of which the provider has taken only some pieces. At most one a link: the next work is refused until it is over.
struct OpenPut {
    bool open = false;
    bool notify = false;
    std::uint32_t immediate = 0;
    std::uint64_t cookie = 0;
    std::uint64_t offset = 0;
    RegionKey key;
    Source source;
};

/// A message that came before its turn.
struct Early {
    std::uint16_t number = 0;
    Kind kind = Kind::frame;
    std::uint8_t flags = 0;
    std::span<const std::byte> body;
    ReceiveBuffer* buffer = nullptr;
};

struct Link {
    LinkId id;
    Phase phase = Phase::free;
    bool announced = false;   // link_up was handed out: frames may follow
    bool complained = false;  // about puts to nowhere
    bool refused = false;     // its last work
    bool ready = false;       // listed as having early messages whose turn has come
    Peer* peer = nullptr;
    std::uint64_t token = 0;  // ours
    LinkName theirs;
    std::size_t message_bytes = 0;    // of the largest that we send and the other side takes
    base::Nanoseconds patience = 0;   // greeting: left until the hello must have been heard; 0: it has been
    std::uint16_t next_number = 0;    // of what is sent
    std::uint16_t next_expected = 0;  // of what comes
    std::uint32_t undone = 0;
    std::uint32_t sending = 0;
    std::size_t sending_bytes = 0;
    OpenPut put;
    std::vector<Early> early;
    std::size_t early_bytes = 0;
    std::string label;

    [[nodiscard]] LinkName name() const noexcept { return {id.index, token}; }
};

}  // namespace railmux::transports::ofi

// Link: one queue pair of a rail, the connection it came from, its credits, and the work requests it has on their way.
//
// Credits: the receiver of a link has so many buffers for its frames in the rail's shared receive queue, and the sender
// counts how many of them are free, so that no frame ever meets a queue without buffers. The receiver returns credits in the
// immediate data of its own frames, or, when half of them are gone, in a message of their own.
//
// Threads and lifetime: part of its rail.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "transports/transport.hpp"
#include "transports/verbs/fabric.hpp"
#include "transports/verbs/slabs.hpp"

namespace railmux::transports::verbs {

// A default eager message (16 KiB) with its headers; with less than that, large messages would go by rendezvous too early.
inline constexpr std::uint32_t frame_bytes = least_max_frame;
// Puts are copied into registered memory in pieces of this size: 1.3 us of a wire of 400 Gbit/s, which hides the copying of
// the next one behind the sending of the last.
inline constexpr std::uint32_t bulk_bytes = 64 * 1024;
inline constexpr std::uint32_t largest_put = 1 << 20;
// Smaller frames go into the work request itself, where the device has room for that.
inline constexpr std::uint32_t inline_bytes = 128;

// Frames that a sender may have on their way on one link: 32 of the largest are 0.5 MB, what 400 Gbit/s carry in 10 us;
// of the smallest, 10 million a second at a round trip of 3 us.
inline constexpr std::uint32_t link_credits = 32;
// Messages of nothing but credit come after each 16 frames. The sender has 32 credits in all, so two such messages can be on
// their way before it has seen the first; they need no credit themselves, only buffers.
inline constexpr std::uint32_t credits_returned_at = link_credits / 2;
inline constexpr std::uint32_t credit_messages = 2;
inline constexpr std::uint32_t receives_per_link = link_credits + credit_messages;
// Buffers beyond those, for all links together: so many may be used up before the receive queue is filled again with one call,
// which takes a lock and tells the device, whatever it brings.
inline constexpr std::uint32_t receives_in_reserve = 32;

inline constexpr std::uint32_t tx_depth = 64;  // works of a link
inline constexpr std::uint32_t data_requests =
    100;  // their work requests: the smallest frames and two or three large puts
inline constexpr std::uint32_t last_requests = 1;  // marks the end of a link's completions
inline constexpr std::uint32_t send_queue_depth = data_requests + credit_messages + last_requests;
inline constexpr std::uint32_t request_ring = 128;
static_assert(send_queue_depth <= request_ring && (request_ring & (request_ring - 1)) == 0);
static_assert(largest_put / bulk_bytes <= data_requests);

// Immediate data of a message: how many credits it returns, and whether that is all it is for.
inline constexpr std::uint32_t credit_only = 1U << 31;

enum class Phase : std::uint8_t {
    free,
    resolving,       // connecting: looking for the address, then for the path
    awaiting_reply,  // request sent
    requested,       // hello handed up; waiting for accept or refuse
    accepting,       // accepted; waiting for the other side's confirmation, or its first frame
    up,
    draining,  // the queue pair is in the error state; its work requests come back
};

enum class RequestKind : std::uint8_t { frame, put, get, credit, last };

/// A work request that the device has.
struct Request {
    RequestKind kind = RequestKind::frame;
    bool ends_work = false;
    std::uint32_t slab = no_slab;
    std::uint64_t cookie = 0;
    std::span<std::byte> into{};  // get: where the slab is to be copied to; empty: it came to its place
};

struct Link {
    LinkId id;
    Phase phase = Phase::free;
    CmId connection;
    std::uint32_t queue = 0;     // number of the queue pair
    std::uint32_t inlined = 0;   // bytes that a work request itself can carry
    std::uint32_t resolves = 0;  // of its address, so far
    bool full_hello = false;     // which port the request goes to
    bool closed = false;         // by us: what still arrives goes nowhere
    bool granting = false;       // listed as owing credits
    bool failed = false;         // a work request came back with an error: so do all behind it
    bool denied = false;         // the put whose pieces are coming back was not allowed
    std::uint32_t credits = link_credits;
    std::uint32_t owed = 0;          // credits to return
    std::uint64_t received = 0;      // messages
    std::uint64_t acknowledged = 0;  // completions of what was sent
    std::uint32_t held = 0;          // frames received whose credits have not been returned
    std::uint32_t undone = 0;        // works accepted whose `done` has not been handed out
    std::uint32_t first = 0;         // oldest work request on its way ...
    std::uint32_t next = 0;          // ... and the number of the next one
    std::array<Request, request_ring> requests{};
    std::vector<std::byte> hello;  // until the request is sent
    std::vector<std::byte> reply;  // with the link_down
    std::string cause;
    std::string label;

    [[nodiscard]] std::uint32_t on_their_way() const noexcept { return next - first; }
    [[nodiscard]] Request& request(std::uint32_t number) noexcept { return requests[number & (request_ring - 1)]; }
};

}  // namespace railmux::transports::verbs

// Origin: the side that reaches into a peer's memory: one-sided operations from the call until it is known what became of
// them over there, and flushes, which wait for those before them.
//
//   small put, get, atomic: one frame asks; a result, or the bytes, come back
//   large put: a frame announces; cts says where to; bulk over all rails; a result
//   large get: a frame says where to; bulk over all rails comes back
//
// Flow control: what is unanswered costs credit towards its peer (payloads of either direction included, in units as for
// messages), as far as the eager window goes; the rest waits here, in the buffers of the application.
// Threads: one engine at a time.
// Lifetime: owned by the engine; refers to its operations, the rail manager and bulk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <railmux/one_sided.hpp>

#include "messaging/bulk_in.hpp"
#include "messaging/bulk_out.hpp"
#include "messaging/one_sided_wire.hpp"
#include "messaging/operation.hpp"
#include "messaging/slot_table.hpp"
#include "rails/rail_manager.hpp"

namespace railmux::messaging {

enum class AccessKind : std::uint8_t { put, get, atomic };

/// One operation on a peer's memory. Its buffer is the operation's.
struct Access {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;
    bool used = false;

    AccessKind kind{};
    PutOptions put;
    AtomicCall atomic;
    std::uint32_t peer = 0;
    RemotePlace place;
    std::uint64_t bytes = 0;
    Operation* operation = nullptr;  // until it ends: of a put that may be before the access is over

    bool large = false;
    bool sent = false;
    bool moving = false;    // large put: the source is still read
    bool answered = false;  // ... and how it ended is known already
    ErrorCode code = ErrorCode::ok;
    ErrorCode gone = ErrorCode::ok;  // large put: the peer went, and its answer cannot come any more
    Handle bulk;
    std::uint64_t fence = 0;  // among those of its peer
    std::uint32_t cost = 0;   // credit
    Access* next = nullptr;   // in the queue of those that wait
};

class Origin final : private BulkOut::Owner, private BulkIn::Owner {
public:
    struct Options {
        std::size_t small_max = 16 * 1024;  // payload that goes in a frame
        std::uint32_t window = 16384;       // credit units towards a peer
    };

    Origin(Options options, Operations& operations, rails::RailManager& rails, BulkOut& out, BulkIn& in);

    /// An access of the operation, whose peer and buffer are set, to be filled in for start.
    [[nodiscard]] Access& begin(Operation& operation, AccessKind kind, const RemotePlace& place);
    /// Asks now or as soon as it can.
    void start(Access& access, base::Nanoseconds now);
    /// Ends the operation when all that was started towards these peers before is over.
    void flush(Operation& operation, std::span<const std::uint32_t> peers);
    /// ... or towards anybody.
    void flush_all(Operation& operation);
    /// Tries again what waits for this peer.
    void resume(std::uint32_t peer, base::Nanoseconds now);

    // Frames; false when one breaks the protocol.
    [[nodiscard]] bool on_got(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);
    [[nodiscard]] bool on_results(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);

    void peer_gone(std::uint32_t peer, ErrorCode code);
    /// Whether something started towards this peer is not over.
    [[nodiscard]] bool busy(std::uint32_t peer) const noexcept;

private:
    /// A flush under way: it ends when the last of its peers has come so far.
    struct Flush {
        std::uint32_t index = 0;
        std::uint32_t generation = 0;
        bool used = false;

        Operation* operation = nullptr;
        std::size_t left = 0;  // peers
        ErrorCode code = ErrorCode::ok;
        Peer at;  // of the error
    };
    /// What was started between two flushes of one peer.
    struct Fence {
        std::uint32_t open = 0;          // accesses not over
        ErrorCode code = ErrorCode::ok;  // the first error that no request has told
        Flush* flush = nullptr;          // the one that waits for these; the last fence has none yet
    };
    struct Flow {  // towards one peer
        Access* waiting = nullptr;
        Access* last_waiting = nullptr;
        bool resuming = false;
        std::uint32_t charged = 0;
        std::uint32_t open = 0;         // accesses not over, of all fences
        std::uint64_t first_fence = 0;  // number of the first in the list
        std::vector<Fence> fences{1};
    };

    [[nodiscard]] Flow& flow_to(std::uint32_t peer);
    void send(Access& access, base::Nanoseconds now);
    void send_put(Access& access, base::Nanoseconds now);
    void send_get(Access& access, base::Nanoseconds now);
    void send_atomic(Access& access, base::Nanoseconds now);
    void send_put_request(Access& access, base::Nanoseconds now);
    void send_get_request(Access& access, base::Nanoseconds now);
    [[nodiscard]] rails::Frame* new_frame(rails::FrameType type, std::size_t body);
    [[nodiscard]] static AskHead head_of(const Access& access) noexcept;
    [[nodiscard]] Access* asked(std::uint32_t peer, Handle handle) noexcept;
    [[nodiscard]] bool take_result(Access& access, const Result& result);
    void end_operation(Access& access, ErrorCode code);
    void end(Access& access, ErrorCode code);
    void advance(std::uint32_t peer, Flow& flow);

    void bulk_sent(std::uint64_t access, ErrorCode code, std::uint64_t rails) override;
    void bulk_received(std::uint64_t access, ErrorCode code) override;

    Options options_;
    Operations& operations_;
    rails::RailManager& rails_;
    BulkOut& out_;
    BulkIn& in_;
    SlotTable<Access> accesses_;
    SlotTable<Flush> flushes_;
    std::vector<std::unique_ptr<Flow>> flows_;  // by peer
};

}  // namespace railmux::messaging

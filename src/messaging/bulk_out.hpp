// BulkOut: large payloads on their way to peers: the answer to a rendezvous, to a large put, or to a large get. Each is cut
// into pieces as the links of the peer have room; a piece is a put into the receiver's opened region, closed by a fin. What was
// offered with the announcement the receiver may get instead, all or a part; that is closed by its fin_ack.
//
// Threads: one engine at a time.
// Lifetime: owned by the engine; refers to the rail manager. The source of a transfer, and the list that names it, stay
// until its owner is told that it is over.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "messaging/local_regions.hpp"
#include "messaging/slot_table.hpp"
#include "messaging/wire.hpp"
#include "rails/rail_manager.hpp"

namespace railmux::messaging {

class BulkOut {
public:
    class Owner {
    public:
        /// The transfer is over: all of it is in place, or the peer is gone. No rail reads the source any more; `rails`
        /// carried it, as bits.
        virtual void bulk_sent(std::uint64_t cookie, ErrorCode code, std::uint64_t rails) = 0;

    protected:
        ~Owner() = default;
    };

    struct Source {
        std::uint32_t peer = 0;
        std::span<const transports::Segment> pieces;
        std::uint64_t bytes = 0;
        std::uint32_t inlined = 0;  // of those: the first ones, which have been sent
        bool message = false;       // what its receiver would rather have had goes for the next one, too
        Owner* owner = nullptr;
        std::uint64_t cookie = 0;  // the owner's
    };

    BulkOut(rails::RailManager& rails, LastingRegions& lasting) : rails_(rails), lasting_(lasting) {}

    /// A transfer that waits for the peer to say where to.
    [[nodiscard]] Handle announce(const Source& source);
    /// The same; the source, one piece, is opened to the peer's gets over the rails that can: keys() tell how.
    [[nodiscard]] Handle offer(const Source& source);
    [[nodiscard]] std::span<const rails::BulkTarget::Key> keys() const noexcept { return keys_; }
    /// No answer will come. False, and nothing happens, if one has come.
    [[nodiscard]] bool forget(Handle handle) noexcept;
    // The peer says where to put it, or a part of it; or that it has got a part. False when the frame breaks the protocol.
    [[nodiscard]] bool on_cts(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);
    [[nodiscard]] bool on_fin_ack(std::uint32_t peer, std::span<const std::byte> body);
    /// Whether the peer's last answer says that getting costs it less than being put to.
    [[nodiscard]] bool would_get(std::uint32_t peer) const noexcept {
        return peer < flows_.size() && flows_[peer] != nullptr && flows_[peer]->would_get;
    }
    /// Sends to a place that is known: `keys` are taken over, what is in them afterwards is of no use.
    void send(const Source& source, Handle receiver, std::vector<rails::BulkTarget::Key>& keys, base::Nanoseconds now);

    /// Whether a transfer to the peer is not over.
    [[nodiscard]] bool busy(std::uint32_t peer) const noexcept {
        return peer < flows_.size() && flows_[peer] != nullptr && flows_[peer]->transfers > 0;
    }
    /// ... to anybody.
    [[nodiscard]] bool any_busy() const noexcept { return open_ > 0; }
    /// Frames of transfers that the peer has taken so far: others than before show that it goes on taking.
    [[nodiscard]] std::uint64_t taken(std::uint32_t peer) const noexcept {
        return peer < flows_.size() && flows_[peer] != nullptr ? flows_[peer]->taken : 0;
    }

    // What the rail manager asks and tells (rails::Upper).
    [[nodiscard]] rails::Frame* next(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail,
                                     std::uint64_t most);
    [[nodiscard]] std::uint64_t left(std::uint32_t peer, std::uint8_t remote_rail) noexcept;
    void released(const rails::Frame& frame);
    void denied(std::uint64_t token) noexcept;
    void link_lost(std::uint32_t peer, std::uint32_t rail) noexcept;
    void peer_gone(std::uint32_t peer, ErrorCode code);

private:
    /// A part that one rail is to carry, or, after its link was lost, any.
    struct Share {
        std::uint32_t rail = 0;
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::size_t piece = 0;           // of the source, in which `begin` lies or which comes before
        std::uint64_t piece_offset = 0;  // where that one begins
    };
    static constexpr std::uint32_t any_rail = ~std::uint32_t{0};

    struct Transfer {
        std::uint32_t index = 0;
        std::uint32_t generation = 0;
        bool used = false;

        bool cleared = false;            // the peer has said what it wants
        bool denied = false;             // its puts are not allowed (any more)
        ErrorCode code = ErrorCode::ok;  // how it ends
        ErrorCode gone = ErrorCode::ok;  // ... if the peer did not get all of it before it went
        Source source;
        Handle receiver;
        std::uint64_t wanted = 0;
        std::uint64_t granted = 0;    // of that, to be put, or inlined
        std::uint64_t got = 0;        // ... and what the peer has got
        std::uint32_t under_way = 0;  // frames not yet released
        std::uint64_t unplanned = 0;  // bytes not yet cut into frames
        std::uint64_t rails = 0;      // that carried a piece, as bits
        std::vector<Share> shares;
        std::vector<rails::BulkTarget::Key> keys;
        rails::BulkTarget target;
        std::vector<rails::OpenRegion> offered;
        LocalRegions regions;
    };

    struct Flow {                          // towards one peer
        std::vector<std::uint32_t> ready;  // transfers with bytes to cut, oldest first
        std::uint32_t transfers = 0;
        std::uint64_t taken = 0;  // frames
        bool would_get = false;
    };

    [[nodiscard]] Transfer& begin(const Source& source);
    [[nodiscard]] bool wants(Transfer& transfer, std::uint64_t wanted, std::uint64_t more) noexcept;
    void put(Transfer& transfer, std::uint64_t offset, std::uint64_t bytes, std::vector<rails::BulkTarget::Key>& keys,
             base::Nanoseconds now);
    void plan(Transfer& transfer, std::uint64_t offset, std::uint64_t bytes, base::Nanoseconds now);
    /// Whether pieces may be cut for that rail of the peer.
    [[nodiscard]] static bool takes(const Transfer& transfer, std::uint8_t remote_rail) noexcept;
    void use_reserves(Transfer& transfer) noexcept;
    void end_if_over(Transfer& transfer);
    [[nodiscard]] rails::Frame* cut(Transfer& transfer, Share& share, std::uint32_t rail, std::uint64_t most);
    void end(Transfer& transfer, ErrorCode code);
    void remove(Transfer& transfer) noexcept;
    [[nodiscard]] LocalRegions::Use use_for(const Transfer& transfer) noexcept {
        return {.rails = rails_, .lasting = lasting_, .peer = transfer.source.peer};
    }
    /// Names the transfer in its frames; never 0.
    [[nodiscard]] static std::uint64_t token_of(const Transfer& transfer) noexcept {
        return (std::uint64_t{transfer.generation} << 32 | transfer.index) + 1;
    }
    [[nodiscard]] Transfer* of_token(std::uint64_t token) noexcept;

    rails::RailManager& rails_;
    LastingRegions& lasting_;
    SlotTable<Transfer> transfers_;
    std::size_t open_ = 0;                      // of those
    std::vector<std::unique_ptr<Flow>> flows_;  // by peer
    std::vector<rails::RailShare> shares_;      // scratch
    std::vector<rails::BulkTarget::Key> keys_;  // scratch
};

}  // namespace railmux::messaging

// BulkIn: large payloads on their way in: memory opened to the puts of one peer, over all rails, until all bytes are in their
// place. The other end of BulkOut.
//
// Threads: one engine at a time.
// Lifetime: owned by the engine; refers to the rail manager. The place of a transfer, and the list that names it, stay
// until its owner is told that it is over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "messaging/slot_table.hpp"
#include "messaging/wire.hpp"
#include "rails/rail_manager.hpp"

namespace railmux::messaging {

class BulkIn {
public:
    class Owner {
    public:
        /// The transfer is over and nothing is written any more: all is in place (ok), it was closed before that
        /// (access_denied), or the peer is gone.
        virtual void bulk_received(std::uint64_t cookie, ErrorCode code) = 0;

    protected:
        ~Owner() = default;
    };

    struct Place {
        std::uint32_t peer = 0;
        std::span<const transports::Segment> pieces;  // with room for `bytes`
        std::uint64_t bytes = 0;                      // not 0
        Owner* owner = nullptr;
        std::uint64_t cookie = 0;  // the owner's
    };

    explicit BulkIn(rails::RailManager& rails) : rails_(rails) {}

    /// Opens the place to the peer. Nothing when no rail that leads to it can.
    [[nodiscard]] std::optional<Handle> open(const Place& place);
    /// By which the peer reaches what was opened last.
    [[nodiscard]] std::span<const rails::BulkTarget::Key> keys() const noexcept { return keys_; }
    /// Tells the peer where to put what it announced: what was opened last, or, without a handle, that nothing is wanted.
    void answer(std::uint32_t peer, Handle sender, std::optional<Handle> opened, std::uint64_t bytes,
                base::Nanoseconds now);

    /// Nothing more is written. What the peer still sends is awaited, and then the transfer over.
    void close(Handle handle) noexcept;
    /// Ends a transfer of which nothing will come, without a word to its owner.
    void forget(Handle handle) noexcept;

    /// The bytes that this fin is about, where they are still to be written; none if it is about nothing here.
    [[nodiscard]] std::span<const std::byte> closed_by(std::uint32_t peer, std::span<const std::byte> fin) noexcept;
    [[nodiscard]] bool on_fin(std::uint32_t peer, const rails::FrameHeader& header, std::span<const std::byte> body);
    void peer_gone(std::uint32_t peer, ErrorCode code);

private:
    struct Transfer {
        std::uint32_t index = 0;
        std::uint32_t generation = 0;
        bool used = false;

        bool closed = false;
        bool incomplete = false;  // bytes were not put: it is closed, or they were denied
        Place place;
        std::uint64_t received = 0;
        std::vector<rails::RailManager::OpenRegion> regions;
        std::unique_ptr<std::byte[]> bounce;  // for a scatter list, which a region cannot express
    };

    [[nodiscard]] static std::byte* start_of(const Transfer& transfer) noexcept {
        return transfer.bounce != nullptr ? transfer.bounce.get() : transfer.place.pieces.front().data;
    }
    [[nodiscard]] Transfer* find(std::uint32_t peer, const FinBody& fin) noexcept;
    void end(Transfer& transfer, ErrorCode code);

    rails::RailManager& rails_;
    SlotTable<Transfer> transfers_;
    std::vector<rails::BulkTarget::Key> keys_;
};

}  // namespace railmux::messaging

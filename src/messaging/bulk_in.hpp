// BulkIn: large payloads on their way in, until all bytes are in their place: put by the peer into memory that is opened to it,
// or got from memory that it has opened to us. The other end of BulkOut.
//
// Of what a peer offers, the links that can get bring a part, as large as they bring in the time that the others need for the
// rest, which the peer puts over these. Whichever link has room gets the next piece. What a link that died was getting is got
// over another, or put by the peer, if none is left. One fin_ack closes all that was got, when the last piece is here.
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

#include "messaging/local_regions.hpp"
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

    /// Memory of transfers that rails may write to until they are closed: to be freed after them.
    using Bounces = std::vector<std::unique_ptr<std::byte[]>>;

    BulkIn(rails::RailManager& rails, LastingRegions& lasting, Scheme scheme, Bounces& left)
        : rails_(rails), lasting_(lasting), scheme_(scheme), left_(left) {}
    ~BulkIn();
    BulkIn(const BulkIn&) = delete;
    BulkIn& operator=(const BulkIn&) = delete;

    /// Opens the place to the peer. Nothing when no rail that leads to it can.
    [[nodiscard]] std::optional<Handle> open(const Place& place);
    /// By which the peer reaches what was opened last.
    [[nodiscard]] std::span<const rails::BulkTarget::Key> keys() const noexcept { return keys_; }
    /// Tells the peer where to put what it announced: what was opened last.
    void answer(std::uint32_t peer, Handle sender, Handle opened, std::uint64_t bytes, base::Nanoseconds now);

    /// What a peer announced, and where it can be got from, if it can.
    struct Offer {
        Handle sender;
        std::span<const rails::BulkTarget::Key> keys;
        std::uint32_t inlined = 0;  // bytes that it sends without being asked
        bool asks = true;           // it awaits an answer: that is not all
    };
    /// Brings it into the place. Nothing when that cannot be; the peer is told.
    [[nodiscard]] std::optional<Handle> take(const Place& place, const Offer& offer, base::Nanoseconds now);
    /// Some of the bytes that the peer sends without being asked, each once; of a transfer that is over they are dropped.
    void add_inlined(Handle handle, std::uint64_t offset, std::span<const std::byte> bytes);
    /// Tells the peer that nothing of it is wanted.
    void refuse(std::uint32_t peer, Handle sender, base::Nanoseconds now);
    /// ... nor of anything else: for its sender it fails as peer_left.
    void refuse_for_good(std::uint32_t peer, Handle sender, base::Nanoseconds now);

    /// Nothing more is written. What the peer still sends is awaited, and then the transfer over.
    void close(Handle handle) noexcept;
    /// Ends a transfer of which nothing will come, without a word to its owner.
    void forget(Handle handle) noexcept;

    /// The bytes that this fin is about, where they are still to be written; none if it is about nothing here.
    [[nodiscard]] std::span<const std::byte> closed_by(std::uint32_t peer, std::span<const std::byte> fin) noexcept;
    [[nodiscard]] bool on_fin(std::uint32_t peer, const rails::FrameHeader& header, std::span<const std::byte> body);
    void peer_gone(std::uint32_t peer, ErrorCode code);

    // What the rail manager asks and tells (rails::Upper).
    [[nodiscard]] rails::Frame* next_get(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail,
                                         std::uint64_t most);
    void on_got(std::uint32_t peer, const rails::Frame& frame, transports::WorkStatus status, base::Nanoseconds now);
    /// Links of the peer came or went: what is to be got goes on over those that are left.
    void resume(std::uint32_t peer, base::Nanoseconds now);

private:
    struct Range {
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };
    struct Transfer {
        std::uint32_t index = 0;
        std::uint32_t generation = 0;
        bool used = false;

        bool closed = false;
        bool incomplete = false;  // bytes are not here, and do not come; why is in `lacking`
        bool confirmed = false;   // the peer knows what was got
        bool unreadable = false;  // the peer does not allow it any more
        ErrorCode lacking{};
        ErrorCode code = ErrorCode::ok;  // of a peer that is gone
        Place place;
        std::byte* start = nullptr;  // where it goes: the place, or the bounce
        std::uint64_t granted = 0;   // bytes that the peer is to put ...
        std::uint64_t put = 0;       // ... and has put
        std::uint64_t got = 0;
        std::uint64_t inlined = 0;  // bytes that came without being asked for
        std::vector<rails::OpenRegion> regions;
        // Getting.
        Handle sender;
        std::vector<rails::BulkTarget::Key> offered;
        rails::BulkTarget source;             // in those
        std::vector<Range> unread;            // to be got, and on no link
        std::uint32_t getting = 0;            // pieces on links
        LocalRegions regions_here;            // of the place
        std::unique_ptr<std::byte[]> bounce;  // for a scatter list, which a region cannot express
    };

    [[nodiscard]] Transfer* find(std::uint32_t peer, const FinBody& fin) noexcept;
    [[nodiscard]] Transfer* begin(const Place& place);
    [[nodiscard]] bool open_regions(Transfer& transfer);
    [[nodiscard]] bool grant(Transfer& transfer, const Range& range, base::Nanoseconds now);
    void send_cts(std::uint32_t peer, const CtsBody& cts, std::span<const rails::BulkTarget::Key> keys,
                  base::Nanoseconds now);
    [[nodiscard]] LocalRegions::Use use_for(const Transfer& transfer) noexcept;
    void add_unread(Transfer& transfer, const Range& range);
    void drop_unread(Transfer& transfer) noexcept;
    [[nodiscard]] rails::Frame* cut(Transfer& transfer, std::uint32_t rail, std::uint64_t most);
    void leave_to_peer(Transfer& transfer, base::Nanoseconds now);
    void confirm(Transfer& transfer, base::Nanoseconds now);
    void end_if_over(Transfer& transfer);
    void end(Transfer& transfer, ErrorCode code);
    /// Names the transfer in its frames; never 0.
    [[nodiscard]] static std::uint64_t token_of(const Transfer& transfer) noexcept {
        return std::uint64_t{transfer.index} + 1;
    }

    rails::RailManager& rails_;
    LastingRegions& lasting_;
    Scheme scheme_;
    Bounces& left_;
    SlotTable<Transfer> transfers_;
    std::vector<rails::BulkTarget::Key> keys_;
    std::vector<std::uint32_t> reading_;  // transfers with something unread, oldest first
};

}  // namespace railmux::messaging

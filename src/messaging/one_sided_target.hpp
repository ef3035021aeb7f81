// Target: the side whose memory is reached: registered regions, and what peers ask to be done with them.
//
//   put, atomic               -> checked, done at once              -> a result, gathered until answer()
//   get                       -> checked                            -> got
//   put_request (large put)   -> checked, opened on all rails, cts  -> fins ... -> a result
//   get_request (large get)   -> checked                            -> puts and fins over all rails
//
// A large put opens its part of the region for itself, instead of the whole region once: a piece that is sent again, after
// its link died, could otherwise be written when the put is long over and the bytes are others.
// Threads: one engine at a time.
// Lifetime: owned by the engine; refers to its operations, the rail manager and bulk.
#pragma once

#include <cstdint>
#include <optional>
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

class Target final : private BulkOut::Owner, private BulkIn::Owner {
public:
    Target(Operations& operations, rails::RailManager& rails, BulkOut& out, BulkIn& in);

    // --- Regions, by slot --------------------------------------------------------------------------------------------

    /// Throws Error(system) when the kernel has no random bytes.
    [[nodiscard]] std::uint32_t add(std::span<std::byte> memory, Rights rights);
    [[nodiscard]] RemoteKey key(std::uint32_t region) noexcept;
    [[nodiscard]] std::span<std::byte> memory(std::uint32_t region) noexcept { return regions_.at(region).memory; }
    [[nodiscard]] std::uint64_t notified(std::uint32_t region) noexcept { return regions_.at(region).notified; }
    /// Ends the operation when so many notified puts have arrived.
    void await(std::uint32_t region, std::uint64_t count, Operation& operation);

    /// From now on nobody gets in, and nothing is written any more.
    void withdraw(std::uint32_t region);
    /// A peer that still reads, and what it has taken so far, of whatever is sent to it (BulkOut::taken).
    struct Reader {
        std::uint32_t peer = 0;
        std::uint64_t taken = 0;
    };
    /// Who still reads from it.
    [[nodiscard]] std::vector<Reader> readers(std::uint32_t region);
    /// Frees a withdrawn region that nobody reads.
    void remove(std::uint32_t region) noexcept;

    // --- Frames; false when one breaks the protocol ------------------------------------------------------------------

    [[nodiscard]] bool on_put(std::uint32_t peer, std::span<const std::byte> body);
    [[nodiscard]] bool on_get(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);
    [[nodiscard]] bool on_atomic(std::uint32_t peer, std::span<const std::byte> body);
    [[nodiscard]] bool on_put_request(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);
    [[nodiscard]] bool on_get_request(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);

    /// Sends the results gathered since the last call: those of a burst go together. True if there were any.
    bool answer(base::Nanoseconds now);
    void peer_gone(std::uint32_t peer) noexcept;
    /// Nothing comes any more: ends what waits for notified puts.
    void cancel();

    /// Notified puts that came, so far.
    [[nodiscard]] std::uint64_t notified() const noexcept { return notified_; }

private:
    struct Waiter {
        std::uint64_t count = 0;
        Operation* operation = nullptr;
    };
    struct Region {
        std::uint32_t index = 0;
        std::uint32_t generation = 0;
        bool used = false;

        bool withdrawn = false;
        Rights rights{};
        std::span<std::byte> memory;
        std::array<std::byte, 16> secret{};
        std::uint64_t notified = 0;
        std::vector<Waiter> waiters;
    };
    /// A large operation of a peer under way.
    struct Serving {
        std::uint32_t index = 0;
        std::uint32_t generation = 0;
        bool used = false;

        bool reading = false;  // a get; otherwise a put
        bool notify = false;
        Region* region = nullptr;  // of a put: none once it is withdrawn
        std::uint32_t peer = 0;
        Handle origin;
        Handle bulk;  // of a put
        transports::Segment part;
    };

    /// Results gathered for a peer.
    struct Telling {
        std::uint32_t peer = 0;
        std::vector<Result> results;
    };

    [[nodiscard]] Region* find(const RemotePlace& place, std::uint64_t bytes, Rights wanted) noexcept;
    [[nodiscard]] Serving& serve(std::uint32_t peer, const AskHead& head, Region& region, std::uint64_t bytes);
    void note(Region& region);
    void cancel(Region& region);
    void tell(std::uint32_t peer, const Result& result);
    void send_results(const Telling& telling, base::Nanoseconds now);

    void bulk_sent(std::uint64_t serving, ErrorCode code, std::uint64_t rails) override;
    void bulk_received(std::uint64_t serving, ErrorCode code) override;

    Operations& operations_;
    rails::RailManager& rails_;
    BulkOut& out_;
    BulkIn& in_;
    SlotTable<Region> regions_;
    SlotTable<Serving> servings_;
    std::vector<Telling> tellings_;  // the first `told_` have results; the others keep their room
    std::size_t told_ = 0;
    std::vector<rails::BulkTarget::Key> keys_;  // scratch
    std::uint64_t notified_ = 0;
};

}  // namespace railmux::messaging

// Sender: the way of a message out. In order of the calls, each message goes eagerly (its payload travels with the header)
// or by rendezvous (the header asks, the receiver says where to, the bytes follow over all links), as credit allows.
//
// Flow control: a message costs credit until the receiver's application has taken it. When the eager window is used up,
// further messages go by rendezvous, which costs the receiver no memory but a header; so an unexpected flood stops
// growing while a receive for a later message still finds it. When even the headers are too many, messages wait here.
// Threads: one engine at a time.
// Lifetime: owned by the engine; refers to its operations and the rail manager.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "messaging/operation.hpp"
#include "messaging/slot_table.hpp"
#include "messaging/wire.hpp"
#include "rails/rail_manager.hpp"

namespace railmux::messaging {

class Sender {
public:
    struct Options {
        std::size_t eager_max = 16 * 1024;
        std::uint32_t eager_window = 16384;   // credit units
        std::uint32_t header_window = 65536;  // credit units beyond, for headers only
    };

    Sender(Options options, Operations& operations, rails::RailManager& rails);

    /// Sends now or as soon as it can; the operation's peer and tag are set.
    void start(Operation& operation, base::Nanoseconds now);
    /// Tries again what waits for this peer.
    void resume(std::uint32_t peer, base::Nanoseconds now);
    /// The receiver is ready. False when the frame breaks the protocol.
    [[nodiscard]] bool clear_to_send(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);

    [[nodiscard]] rails::Frame* next_bulk(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail,
                                          std::uint64_t most);
    [[nodiscard]] std::uint64_t bulk_left(std::uint32_t peer, std::uint8_t remote_rail) noexcept;
    void bulk_released(const rails::Frame& frame);
    void link_lost(std::uint32_t peer, std::uint32_t rail, base::Nanoseconds now);
    void peer_gone(std::uint32_t peer, ErrorCode code);

    /// Whether something of ours has not left for this peer yet.
    [[nodiscard]] bool busy(std::uint32_t peer) const noexcept;

private:
    /// A part of a message that one rail is to carry, or, after its link was lost, any.
    struct Share {
        std::uint32_t rail = 0;
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
    };
    static constexpr std::uint32_t any_rail = ~std::uint32_t{0};

    /// A message sent by rendezvous.
    struct Outgoing {
        std::uint32_t index = 0;
        std::uint32_t generation = 0;
        bool used = false;

        bool cleared = false;
        Operation* operation = nullptr;
        Handle receiver;
        std::uint64_t wanted = 0;
        std::uint32_t under_way = 0;  // frames not yet released
        std::uint64_t unplanned = 0;  // bytes not yet cut into frames
        std::uint64_t rails = 0;      // that carried a piece, as bits
        std::vector<Share> shares;
        std::vector<rails::BulkTarget::Key> keys;
        rails::BulkTarget target;
    };

    struct Flow {  // towards one peer
        OperationQueue waiting;
        std::uint32_t charged = 0;        // credit units, ever
        std::vector<std::uint32_t> bulk;  // outgoing messages with bytes to cut, oldest first
        std::uint32_t rendezvous = 0;     // outgoing messages
    };

    [[nodiscard]] Flow& flow_to(std::uint32_t peer);
    [[nodiscard]] bool try_send(Operation& operation, Flow& flow, base::Nanoseconds now);
    void send_eager(Operation& operation, base::Nanoseconds now);
    void send_rts(Operation& operation, Flow& flow, base::Nanoseconds now);
    void plan(Outgoing& message, base::Nanoseconds now);
    [[nodiscard]] rails::Frame* cut(Outgoing& message, Share& share, std::uint64_t most);
    void end(Outgoing& message, ErrorCode code);
    /// Names the message in its frames; never 0.
    [[nodiscard]] static std::uint64_t token_of(const Outgoing& message) noexcept {
        return (std::uint64_t{message.generation} << 32 | message.index) + 1;
    }
    [[nodiscard]] Outgoing* of_token(std::uint64_t token) noexcept;

    Options options_;
    Operations& operations_;
    rails::RailManager& rails_;
    SlotTable<Outgoing> outgoing_;
    std::vector<std::unique_ptr<Flow>> flows_;  // by peer
    std::vector<rails::RailShare> shares_;      // scratch
    std::vector<rails::BulkTarget::Key> keys_;  // scratch
};

}  // namespace railmux::messaging

// Receiver: the way of a message in: matched with a receive or kept until there is one; the payload of a rendezvous asked
// for, and its end noticed.
//
// Threads: one engine at a time.
// Lifetime: owned by the engine; refers to its operations, the rail manager and bulk.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "messaging/bulk_in.hpp"
#include "messaging/matcher.hpp"
#include "messaging/operation.hpp"
#include "messaging/slot_table.hpp"
#include "messaging/wire.hpp"
#include "rails/rail_manager.hpp"

namespace railmux::messaging {

/// A message that came before its receive.
struct Arrived : Unexpected {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;
    bool used = false;

    bool left_behind = false;          // by rendezvous: the payload is still with the sender
    ErrorCode orphan = ErrorCode::ok;  // the session that it came by is over, and how it ended
    rails::Frame* payload = nullptr;   // eager, and what is here of what is inlined: a copy, in a frame of the pool
    std::uint64_t bytes = 0;
    std::uint32_t inlined = 0;  // left behind: but for so many, which are here or come
    Handle sender;
    std::vector<rails::BulkTarget::Key> offered;  // left behind: where it can be got from
    bool own = false;                             // of this process to itself
    Operation* waiting = nullptr;                 // ... the send that has the payload still

    /// The sender awaits an answer.
    [[nodiscard]] bool asks() const noexcept { return left_behind && (bytes == 0 || inlined < bytes); }
    [[nodiscard]] Status status() const noexcept {
        return {.peer = Peer::from_index(peer), .tag = tag, .message = static_cast<std::size_t>(bytes)};
    }
};

class Receiver final : private BulkIn::Owner {
public:
    /// Of what this process sends to itself, until it is received: copies of messages of up to so many bytes are kept, and
    /// of so much credit in all.
    struct Own {
        std::uint32_t peer = anybody;
        std::size_t largest_kept = 0;
        std::uint32_t window = 0;
    };

    Receiver(Operations& operations, rails::RailManager& rails, BulkIn& bulk);
    /// Who this process is among its peers. First of all.
    void know_own(const Own& own) noexcept { own_ = own; }

    /// Receives the first message that fits, now or when it comes. The operation's posted peer, tag and mask are set.
    inline void start(Operation& operation, base::Nanoseconds now);
    [[nodiscard]] bool any_unexpected() const noexcept { return matcher_.any_unexpected(); }
    /// Withdraws a receive that has not matched; false when it has.
    [[nodiscard]] bool cancel(Operation& operation);

    [[nodiscard]] const Arrived* probe(std::uint32_t peer, TagMatch match) const noexcept;
    /// Takes the message out of matching: the caller receives or drops it.
    [[nodiscard]] Arrived* claim(std::uint32_t peer, TagMatch match) noexcept;
    void receive(Arrived& message, Operation& operation, base::Nanoseconds now);
    void drop(Arrived& message, base::Nanoseconds now);

    // Frames; false when one breaks the protocol.
    [[nodiscard]] inline bool on_eager(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);
    [[nodiscard]] bool on_bundle(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);
    [[nodiscard]] bool on_rts(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);
    [[nodiscard]] bool on_inlined(std::uint32_t peer, std::span<const std::byte> body);

    // Messages of this process to itself (own_messages.hpp).
    /// Sends one, which is over with that. False: it would have to wait for its receive.
    [[nodiscard]] inline bool deliver_own(Tag tag, ConstBuffer data);
    /// ... by an operation, which waits if need be.
    void deliver_own(Operation& send);
    /// Sends that wait.
    [[nodiscard]] std::uint32_t own_waiting() const noexcept { return own_waiting_; }

    void peer_gone(std::uint32_t peer, ErrorCode code);

    /// Nothing more is received than what receives are posted for: what nobody waits for is dropped, now and when it comes.
    /// Two processes that leave would otherwise wait for each other to take what they sent.
    void close(base::Nanoseconds now);

    /// Messages that came before anybody wanted them, so far.
    [[nodiscard]] std::uint64_t unexpected() const noexcept { return unexpected_; }

private:
    /// The first bytes of an announced message, which come next from the peer, in one frame or several, and where they go: to a
    /// message that is kept, to the transfer of one that is being received, or, if that is over, nowhere.
    struct Coming {
        std::uint32_t peer = 0;
        std::uint32_t bytes = 0;
        std::uint32_t here = 0;  // of those
        Arrived* message = nullptr;
        std::optional<Handle> transfer{};
    };

    void keep_eager(std::uint32_t peer, const EagerBody& eager, base::Nanoseconds now);
    void start_late(Operation& operation, base::Nanoseconds now);
    inline void deliver(Operation& operation, Status status, std::span<const std::byte> payload);
    [[nodiscard]] std::optional<Handle> answer_rts(Operation& operation, const Status& message,
                                                   const BulkIn::Offer& offer, base::Nanoseconds now);
    void pass_inlined(Arrived& message, std::optional<Handle> transfer);
    [[nodiscard]] rails::Frame* keep(std::span<const std::byte> payload);
    void bulk_received(std::uint64_t operation, ErrorCode code) override;
    void give_credit(const Arrived& message, base::Nanoseconds now);
    void free(Arrived& message) noexcept;
    [[nodiscard]] Operation* match(std::uint32_t peer, Tag tag) noexcept;
    [[nodiscard]] bool keep_own(Tag tag, std::span<const transports::Segment> pieces, std::size_t bytes);
    [[nodiscard]] Arrived& new_own(Tag tag, std::size_t bytes);
    void list_own(Arrived& message);
    void hand_over(Operation& send, Operation& receive);
    void finish_own(Operation& send, ErrorCode code);
    [[nodiscard]] Operation* end_waiting(Arrived& message) noexcept;

    Operations& operations_;
    rails::RailManager& rails_;
    BulkIn& bulk_;
    Matcher matcher_;
    SlotTable<Arrived> arrived_;
    std::vector<Coming> coming_;                // of a peer one at most
    std::vector<rails::BulkTarget::Key> keys_;  // scratch
    Own own_;
    std::uint32_t own_kept_ = 0;  // credit
    std::uint32_t own_waiting_ = 0;
    std::uint64_t unexpected_ = 0;
    bool closed_ = false;
};

}  // namespace railmux::messaging

// Operation: one send or receive of the application, from the call to the moment its result is taken.
//
// Threads: one engine at a time.
// Lifetime: in the engine's SlotTable; a Request names it until its result is taken or the Request is destroyed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <railmux/message.hpp>
#include <railmux/request.hpp>

#include "base/bytes.hpp"
#include "base/in_line.hpp"
#include "messaging/matcher.hpp"
#include "messaging/slot_table.hpp"
#include "transports/transport.hpp"

namespace railmux::messaging {

enum class OperationState : std::uint8_t {
    active,     // under way
    finishing,  // over; its callback is to be called
    over,       // the result may be taken
};

struct Operation {
    std::uint32_t index = 0;
    std::uint32_t generation = 0;
    bool used = false;

    bool receive = false;
    bool detached = false;  // its Request is gone: free it when it is over
    std::atomic<OperationState> state = OperationState::active;
    std::uint32_t peer = anybody;
    Operation* next = nullptr;  // in a peer's queue of sends, or the queue of callbacks
    Posted posted;              // receives
    Tag tag = 0;                // sends
    Status status;
    std::size_t bytes = 0;                    // of all pieces
    transports::Segment piece;                // the only one, usually
    std::vector<transports::Segment> pieces;  // all of them, when there is more than one
    Completion done;

    // With the engine's lock, which orders them.
    [[nodiscard]] RAILMUX_IN_LINE bool over() const noexcept {
        return state.load(std::memory_order_relaxed) == OperationState::over;
    }
    RAILMUX_IN_LINE void become(OperationState next) noexcept { state.store(next, std::memory_order_relaxed); }
    /// It is over: also for whoever looks without the lock.
    RAILMUX_IN_LINE void end() noexcept { state.store(OperationState::over, std::memory_order_release); }
    [[nodiscard]] bool seen_over() const noexcept {
        return state.load(std::memory_order_acquire) == OperationState::over;
    }
    void add(const transports::Segment& part) {
        if (part.size == 0) return;
        if (bytes > 0 && pieces.empty()) pieces.push_back(piece);
        if (bytes > 0) {
            pieces.push_back(part);
        } else {
            piece = part;
        }
        bytes += part.size;
    }
    [[nodiscard]] std::span<const transports::Segment> buffer() const noexcept {
        return pieces.empty() ? std::span(&piece, 1) : std::span(pieces);
    }
};

/// Of a message that went over these rails.
[[nodiscard]] inline Status sent_status(std::uint32_t peer, Tag tag, std::size_t bytes, std::uint64_t rails) noexcept {
    return {.peer = Peer::from_index(peer), .tag = tag, .bytes = bytes, .message = bytes, .rails = rails};
}

/// What is sent from there: a segment is written to only where it receives.
[[nodiscard]] inline transports::Segment source_of(std::span<const std::byte> data) noexcept {
    return {const_cast<std::byte*>(data.data()), data.size(), 0};
}

/// First in, first out, linked through Operation::next. Owns nothing.
class OperationQueue {
public:
    [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
    [[nodiscard]] Operation& front() const noexcept { return *head_; }
    [[nodiscard]] Operation& back() const noexcept { return *tail_; }
    void push(Operation& operation) noexcept {
        operation.next = nullptr;
        (head_ == nullptr ? head_ : tail_->next) = &operation;
        tail_ = &operation;
    }
    void push_front(Operation& operation) noexcept {
        operation.next = head_;
        if (head_ == nullptr) tail_ = &operation;
        head_ = &operation;
    }
    Operation& pop() noexcept {
        Operation& operation = *head_;
        head_ = operation.next;
        operation.next = nullptr;
        return operation;
    }

private:
    Operation* head_ = nullptr;
    Operation* tail_ = nullptr;
};

/// All operations of one context, and how they end.
class Operations {
public:
    /// An operation without a buffer yet.
    [[nodiscard]] Operation& begin(bool receive, Completion&& done);
    /// A receive without a callback, into one piece.
    [[nodiscard]] RAILMUX_IN_LINE Operation& begin_receive(std::span<std::byte> into) {
        Operation& operation = begun(true);
        operation.piece = {into.data(), into.size(), 0};
        operation.bytes = into.size();
        return operation;
    }
    /// A send that is over already, and has no callback: all there is of it is its result.
    [[nodiscard]] RAILMUX_IN_LINE Operation& begin_over() {
        Operation& operation = table_.take();
        operation.receive = operation.detached = false;
        operation.become(OperationState::over);
        ++ended_;
        return operation;
    }
    /// Ends it: its result may be taken at once, or after its callback has run.
    RAILMUX_IN_LINE void finish(Operation& operation, const Status& status) {
        operation.status = status;
        if (operation.done) [[unlikely]]
            return call_later(operation);
        ++ended_;
        operation.end();
        if (operation.detached) [[unlikely]]
            free(operation);
    }
    /// Frees it: the result is taken.
    void free(Operation& operation) noexcept {
        if (operation.done) [[unlikely]]
            operation.done = nullptr;
        table_.give(operation);
    }
    /// Its Request is gone.
    void detach(Operation& operation) noexcept;
    [[nodiscard]] Operation& at(std::uint32_t index) noexcept { return table_.at(index); }

    /// Those that ended and whose callbacks are to be called, in that order. One counts as over when its callback has been
    /// called: whoever waits for it may rely on that.
    struct Called {
        std::uint32_t index = 0;
        Status status;
        Completion done;
    };
    [[nodiscard]] bool any_finished() const noexcept { return !finishing_.empty(); }
    [[nodiscard]] std::optional<std::uint32_t> last_finished() const noexcept {
        return finishing_.empty() ? std::nullopt : std::optional(finishing_.back().index);
    }
    [[nodiscard]] Called next_finished();
    void called(const Called& call) noexcept;
    /// Counts operations that ended: moves on whenever a wait may be over.
    [[nodiscard]] std::uint64_t ended() const noexcept { return ended_; }

private:
    [[nodiscard]] RAILMUX_IN_LINE Operation& begun(bool receive) {
        Operation& operation = table_.take();
        operation.receive = receive;
        operation.posted.operation = &operation;
        operation.detached = false;
        operation.become(OperationState::active);
        if (!operation.pieces.empty()) [[unlikely]]
            operation.pieces.clear();
        return operation;  // whose status is set when it is known
    }
    void call_later(Operation& operation) noexcept;

    SlotTable<Operation> table_;
    OperationQueue finishing_;
    std::uint64_t ended_ = 0;
};

/// Copies from a contiguous piece into a list of segments, which has room, and the other way round.
void scatter_pieces(std::span<const transports::Segment> to, std::span<const std::byte> from) noexcept;
RAILMUX_IN_LINE void scatter(std::span<const transports::Segment> to, std::span<const std::byte> from) noexcept {
    if (to.size() != 1) return scatter_pieces(to, from);
    assert(from.size() <= to.front().size);
    base::copy(to.front().data, from.data(), from.size());
}
RAILMUX_IN_LINE void gather(std::byte* to, std::span<const transports::Segment> from) noexcept {
    for (const auto& piece : from) {
        base::copy(to, piece.data, piece.size);
        to += piece.size;
    }
}
/// ... `bytes` of it, from `offset` on.
void gather_part(std::byte* to, std::span<const transports::Segment> from, std::size_t offset,
                 std::size_t bytes) noexcept;
/// The first `bytes` from one list to another; both have as many.
void copy_pieces(std::span<const transports::Segment> to, std::span<const transports::Segment> from,
                 std::size_t bytes) noexcept;

}  // namespace railmux::messaging

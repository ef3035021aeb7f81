// The measured loops: a series of messages of one size between two processes, the same code on both sides.
//
// Nothing here allocates once the buffers stand, and the clock is read once a round trip.
//
// Threads: one thread, the one that uses the context.
// Lifetime: objects live for one series and only refer to context, order and buffers.
#pragma once

#include <railmux/context.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "tools/buffers.hpp"
#include "tools/control.hpp"

namespace railmux::tools {

/// One side's part in a series: with whom, what, and the content's seeds as this side sees them.
struct Part {
    Context& context;
    Peer peer;
    Order order;
    std::uint64_t send_seed = 0;
    std::uint64_t receive_seed = 0;
    base::Nanoseconds pause = 0;  // of the side that begins a ping-pong, after each round trip
};

/// Throws Error when an operation failed; truncation passes.
void wait_for(const Part& part, std::span<Request> requests, std::span<Status> statuses);

/// Notes a wrong message.
void note_fault(Reply& tally, std::string text);

[[nodiscard]] Part driver_part(Context& context, Peer peer, const Order& order);
[[nodiscard]] Part server_part(Context& context, Peer peer, const Order& order);

/// Buffers for a series, with the content to send and with poison where messages will be received.
void prepare(const Part& part, Buffers& outgoing, Buffers& incoming);

/// The side that begins: sends (as many messages as the window at once), waits for as many answers, stores each round trip's
/// nanoseconds as long as there is room.
void ping(const Part& part, Buffers& outgoing, Buffers& incoming, std::span<std::int64_t> samples, Reply& tally);
/// The other side.
void pong(const Part& part, Buffers& outgoing, Buffers& incoming, Reply& tally);

/// The order's messages in one direction, at most `window` under way. They go in batches of half a window, so that the
/// library sees bursts and yet is never idle while a batch is waited for.
class Lane {
public:
    Lane(const Part& part, Buffers& buffers);

    [[nodiscard]] bool done() const noexcept { return finished_ == part_.order.count; }

protected:
    ~Lane() = default;

    /// Indices of the next batch that fits into the window; empty when none does.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> next_batch() const noexcept;
    /// Waits for the oldest batch, gives its results. Throws Error when an operation failed; truncation passes.
    std::span<const Status> wait_batch();

    [[nodiscard]] std::span<std::byte> buffer_of(std::uint64_t index) const noexcept {
        return buffers_[index % buffers_.count()];
    }

    const Part& part_;
    Buffers& buffers_;
    std::vector<Request> requests_;  // as many as the window; message i has place i % window
    std::vector<Status> statuses_;
    std::uint64_t batch_ = 1;
    std::uint64_t started_ = 0;
    std::uint64_t finished_ = 0;
};

class SendLane : public Lane {
public:
    using Lane::Lane;
    void start();
    void finish() { static_cast<void>(wait_batch()); }
};

class ReceiveLane : public Lane {
public:
    ReceiveLane(const Part& part, Buffers& buffers, Reply& tally) : Lane(part, buffers), tally_(tally) {}
    void start();
    void finish();

private:
    Reply& tally_;
};

/// Runs the lanes that are there to their ends; receives may have been started before.
void stream(SendLane* out, ReceiveLane* in);

/// After a series: checks the whole of the last message in each receive buffer.
void verify_bodies(const Part& part, Buffers& incoming, Reply& tally);

}  // namespace railmux::tools

#include "tools/series.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "tools/pattern.hpp"

namespace railmux::tools {

void wait_for(const Part& part, std::span<Request> requests, std::span<Status> statuses) {
    if (part.context.wait_all(requests, statuses) == ErrorCode::ok) return;
    for (const auto& status : statuses) {
        if (status.ok() || status.truncated()) continue;
        throw Error(status.code,
                    fmt::format("{}: {}\n{}", part.context.name(part.peer), to_string(status.code),
                                base::trim(part.context.failure(part.peer))),
                    "`railmux info` on both hosts shows their rails, and why others are off");
    }
}

namespace {

constexpr int poison = 0xee;

void verify_message(std::span<const std::byte> message, const Part& part, std::uint64_t index, Reply& tally) {
    const auto wrong = first_difference(message, part.receive_seed, part.order.number(index));
    if (!wrong) return;
    note_fault(tally,
               fmt::format("message {} of {} bytes: byte {} is not what was sent", index, message.size(), *wrong));
}

// Counts a received message and checks as much of it as the order says.
void take(const Status& status, std::span<std::byte> buffer, const Part& part, std::uint64_t index, Reply& tally) {
    ++tally.messages;
    tally.bytes += status.bytes;
    if (status.bytes != buffer.size() || status.message != buffer.size()) {
        note_fault(tally, fmt::format("message {}: {} bytes arrived of a message of {}, expected {}", index,
                                      status.bytes, status.message, buffer.size()));
    } else if (part.order.check == Check::all) {
        verify_message(buffer, part, index, tally);
        if (!part.order.shares_buffers()) std::memset(buffer.data(), poison, buffer.size());
    } else if (!stamped(buffer, part.receive_seed, part.order.number(index))) {
        note_fault(tally, fmt::format("message {} of {} bytes: it does not carry its own number: lost, doubled or "
                                      "out of order",
                                      index, buffer.size()));
    }
}

// One side's half of the bursts: `window` messages there, as many back.
class Bursts {
public:
    Bursts(const Part& part, Buffers& outgoing, Buffers& incoming)
        : part_(part),
          outgoing_(outgoing),
          incoming_(incoming),
          sends_(std::clamp<std::uint64_t>(part.order.count, 1, part.order.window)),
          receives_(sends_.size()),
          statuses_(sends_.size()) {}

    [[nodiscard]] bool done() const noexcept { return first_ == part_.order.count; }

    void expect() {
        for (std::uint64_t i = 0; i < size(); ++i) {
            receives_[i] = part_.context.irecv(part_.peer, data_tag, incoming_[i % incoming_.count()]);
        }
    }
    void send() {
        for (std::uint64_t i = 0; i < size(); ++i) {
            const auto message = outgoing_[i % outgoing_.count()];
            stamp(message, part_.send_seed, part_.order.number(first_ + i));
            sends_[i] = part_.context.isend(part_.peer, data_tag, message);
        }
        wait_for(part_, std::span(sends_).first(size()), std::span(statuses_).first(size()));
    }
    void receive(Reply& tally) {
        const auto statuses = std::span(statuses_).first(size());
        wait_for(part_, std::span(receives_).first(size()), statuses);
        for (std::uint64_t i = 0; i < size(); ++i) {
            take(statuses[i], incoming_[i % incoming_.count()], part_, first_ + i, tally);
        }
    }
    void next() noexcept { first_ += size(); }

private:
    [[nodiscard]] std::uint64_t size() const noexcept {
        return std::min<std::uint64_t>(sends_.size(), part_.order.count - first_);
    }

    const Part& part_;
    Buffers& outgoing_;
    Buffers& incoming_;
    std::vector<Request> sends_;
    std::vector<Request> receives_;
    std::vector<Status> statuses_;
    std::uint64_t first_ = 0;  // message of the burst under way
};

/// Until the next round trip; when that begins.
base::Nanoseconds rest(const Part& part, base::Nanoseconds since) {
    auto now = since;
    for (; now - since < part.pause; now = base::now_ns()) static_cast<void>(part.context.progress());
    return now;
}

void ping_bursts(const Part& part, Buffers& outgoing, Buffers& incoming, std::span<std::int64_t> samples,
                 Reply& tally) {
    auto before = base::now_ns();
    Bursts bursts(part, outgoing, incoming);
    for (std::size_t i = 0; !bursts.done(); bursts.next(), ++i) {
        bursts.expect();
        bursts.send();
        bursts.receive(tally);
        const auto now = base::now_ns();
        if (i < samples.size()) samples[i] = now - before;
        before = rest(part, now);
    }
}

void pong_bursts(const Part& part, Buffers& outgoing, Buffers& incoming, Reply& tally) {
    for (Bursts bursts(part, outgoing, incoming); !bursts.done(); bursts.next()) {
        bursts.expect();
        bursts.receive(tally);
        bursts.send();
    }
}

}  // namespace

void note_fault(Reply& tally, std::string text) {
    if (tally.faults++ == 0) tally.problem = std::move(text);
}

Part driver_part(Context& context, Peer peer, const Order& order) {
    return {context, peer, order, order.seed, ~order.seed};
}

Part server_part(Context& context, Peer peer, const Order& order) {
    return {context, peer, order, ~order.seed, order.seed};
}

void prepare(const Part& part, Buffers& outgoing, Buffers& incoming) {
    const auto& order = part.order;
    const auto slots = std::max<std::uint64_t>(1, std::min({order.buffers, order.window, order.count}));
    outgoing.resize(order.bytes, slots);
    incoming.resize(order.bytes, slots);
    for (std::uint64_t i = 0; i < slots; ++i) fill(outgoing[i], part.send_seed);
    std::memset(incoming.all().data(), poison, incoming.all().size());
}

void ping(const Part& part, Buffers& outgoing, Buffers& incoming, std::span<std::int64_t> samples, Reply& tally) {
    if (part.order.window > 1) return ping_bursts(part, outgoing, incoming, samples, tally);
    const auto message = outgoing[0];
    const auto answer = incoming[0];
    auto before = base::now_ns();
    for (std::uint64_t i = 0; i < part.order.count; ++i) {
        stamp(message, part.send_seed, i);
        part.context.send(part.peer, data_tag, message);
        const auto status = part.context.recv(part.peer, data_tag, answer);
        take(status, answer, part, i, tally);
        const auto now = base::now_ns();
        if (i < samples.size()) samples[i] = now - before;
        before = rest(part, now);
    }
}

void pong(const Part& part, Buffers& outgoing, Buffers& incoming, Reply& tally) {
    if (part.order.window > 1) return pong_bursts(part, outgoing, incoming, tally);
    const auto message = incoming[0];
    const auto answer = outgoing[0];
    for (std::uint64_t i = 0; i < part.order.count; ++i) {
        const auto status = part.context.recv(part.peer, data_tag, message);
        take(status, message, part, i, tally);
        stamp(answer, part.send_seed, i);
        part.context.send(part.peer, data_tag, answer);
    }
}

Lane::Lane(const Part& part, Buffers& buffers)
    : part_(part),
      buffers_(buffers),
      requests_(std::clamp<std::uint64_t>(part.order.count, 1, part.order.window)),
      statuses_(requests_.size()),
      batch_((requests_.size() + 1) / 2) {}

std::pair<std::uint64_t, std::uint64_t> Lane::next_batch() const noexcept {
    const auto free = requests_.size() - (started_ - finished_);
    const auto left = part_.order.count - started_;
    return {started_, started_ + std::min({batch_, free, left})};
}

std::span<const Status> Lane::wait_batch() {
    const auto place = finished_ % requests_.size();
    const auto size = std::min({batch_, started_ - finished_, requests_.size() - place});
    const auto statuses = std::span(statuses_).first(size);
    wait_for(part_, std::span(requests_).subspan(place, size), statuses);
    finished_ += size;
    return statuses;
}

void SendLane::start() {
    const auto [first, last] = next_batch();
    for (auto i = first; i < last; ++i) {
        const auto message = buffer_of(i);
        stamp(message, part_.send_seed, part_.order.number(i));
        requests_[i % requests_.size()] = part_.context.isend(part_.peer, data_tag, message);
    }
    started_ = last;
}

void ReceiveLane::start() {
    const auto [first, last] = next_batch();
    for (auto i = first; i < last; ++i) {
        requests_[i % requests_.size()] = part_.context.irecv(part_.peer, data_tag, buffer_of(i));
    }
    started_ = last;
}

void ReceiveLane::finish() {
    auto index = finished_;
    for (const auto& status : wait_batch()) {
        take(status, buffer_of(index), part_, index, tally_);
        ++index;
    }
}

void stream(SendLane* out, ReceiveLane* in) {
    if (in != nullptr) in->start();
    if (out != nullptr) out->start();
    while ((out != nullptr && !out->done()) || (in != nullptr && !in->done())) {
        // The second batch is started before the first is waited for.
        if (in != nullptr) in->start();
        if (out != nullptr) out->start();
        if (out != nullptr && !out->done()) out->finish();
        if (in != nullptr && !in->done()) in->finish();
    }
}

void verify_bodies(const Part& part, Buffers& incoming, Reply& tally) {
    if (part.order.check == Check::all) return;  // each was checked when it came
    const auto count = part.order.count;
    const auto slots = std::min(incoming.count(), count);
    for (auto index = count - slots; index < count; ++index) {
        verify_message(incoming[index % incoming.count()], part, index, tally);
    }
}

}  // namespace railmux::tools

#include "tools/access.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"
#include "tools/pattern.hpp"

namespace railmux::tools {
namespace {

std::uint64_t counter_of(std::span<const std::byte> word) noexcept {
    return word.size() == 4 ? base::load<std::uint32_t>(word.data()) : base::load<std::uint64_t>(word.data());
}

// The number that a get finds in its slot.
std::uint64_t slot_number(const Part& part, const Buffers& buffers, std::uint64_t index) noexcept {
    return part.order.number(index % buffers.count());
}

class Reach : public Lane {
public:
    Reach(const Part& part, const RemoteKey& key, Buffers& buffers, Reply& tally)
        : Lane(part, buffers), key_(key), tally_(tally) {}

    void start() {
        const auto [first, last] = next_batch();
        for (auto i = first; i < last; ++i) requests_[i % requests_.size()] = begin(i);
        started_ = last;
    }

    void finish() {
        auto index = finished_;
        for (const auto& status : wait_batch()) take(status, index++);
    }

private:
    [[nodiscard]] Request begin(std::uint64_t index) {
        const auto buffer = buffer_of(index);
        const auto slot = index % buffers_.count();
        auto& context = part_.context;
        const RemotePlace place{key_, slot * Buffers::stride_of(part_.order.bytes)};
        switch (part_.order.action) {
            case Action::put:
                stamp(buffer, part_.send_seed, part_.order.number(index));
                return context.iput(part_.peer, place, buffer, {.end = PutEnd::remote, .notify = true});
            case Action::get: return context.iget(part_.peer, place, buffer);
            default: return add(buffer);
        }
    }

    // To the one counter; what was there comes into the slot.
    [[nodiscard]] Request add(std::span<std::byte> before) {
        auto* const word = before.data();  // page-aligned slots of 64 bytes
        const RemotePlace place{key_, 0};
        if (before.size() == 4) {
            return part_.context.ifetch_add(part_.peer, place, 1, *reinterpret_cast<std::uint32_t*>(word));  // NOLINT
        }
        return part_.context.ifetch_add(part_.peer, place, 1, *reinterpret_cast<std::uint64_t*>(word));  // NOLINT
    }

    void take(const Status& status, std::uint64_t index) {
        ++tally_.messages;
        tally_.bytes += status.bytes;
        const auto buffer = buffer_of(index);
        if (part_.order.action == Action::get) {
            if (!stamped(buffer, part_.receive_seed, slot_number(part_, buffers_, index))) {
                note_fault(tally_, fmt::format("get {}: not what is there", index));
            }
        } else if (part_.order.action == Action::atomic && !part_.order.shares_buffers()) {
            const auto mask = buffer.size() == 4 ? 0xffffffffU : ~std::uint64_t{0};
            if (counter_of(buffer) != (index & mask)) {
                note_fault(tally_, fmt::format("atomic {} found {}", index, counter_of(buffer)));
            }
        }
    }

    const RemoteKey& key_;
    Reply& tally_;
};

// Every byte of what the gets left.
void verify_gets(const Part& part, Buffers& incoming, Reply& tally) {
    for (std::uint64_t i = 0; i < std::min(incoming.count(), part.order.count); ++i) {
        const auto wrong = first_difference(incoming[i], part.receive_seed, slot_number(part, incoming, i));
        if (wrong) note_fault(tally, fmt::format("get of slot {}: byte {} is not what is there", i, *wrong));
    }
}

}  // namespace

Reply expose(const Part& part, Buffers& outgoing, Buffers& incoming) {
    const auto& order = part.order;
    auto& memory = order.action == Action::get ? outgoing : incoming;
    for (std::uint64_t i = 0; order.action == Action::get && i < memory.count(); ++i) {
        stamp(memory[i], part.send_seed, slot_number(part, memory, i));
    }
    if (order.action == Action::atomic) std::ranges::fill(memory.all(), std::byte{});
    const auto region = part.context.register_memory(memory.all());
    part.context.send(part.peer, reply_tag, encode(Reply{.key = region.key()}));
    static_cast<void>(part.context.recv(part.peer, verify_tag, {}));  // the others serve themselves meanwhile

    Reply tally{.messages = order.count, .bytes = order.count * order.bytes};
    if (order.action == Action::put) {
        tally.messages = region.notified();
        tally.bytes = tally.messages * order.bytes;
        auto all = part;
        all.order.check = Check::stamps;  // nothing was looked at when it came
        verify_bodies(all, incoming, tally);
    } else if (order.action == Action::atomic) {
        const auto mask = order.bytes == 4 ? 0xffffffffU : ~std::uint64_t{0};
        const auto count = counter_of(memory[0]);
        if (count != (order.count & mask)) note_fault(tally, fmt::format("the counter is {}", count));
    }
    return tally;
}

base::Nanoseconds reach(const Part& part, const RemoteKey& key, Buffers& outgoing, Buffers& incoming,
                        std::span<std::int64_t> samples, Reply& tally) {
    Reach lane(part, key, part.order.action == Action::put ? outgoing : incoming, tally);
    const auto begin = base::now_ns();
    auto before = begin;
    lane.start();
    for (std::size_t i = 0; !lane.done(); ++i) {
        if (part.order.window > 1) lane.start();  // the second batch before the first is waited for
        lane.finish();
        if (part.order.window > 1) continue;
        const auto now = base::now_ns();
        if (i < samples.size()) samples[i] = now - before;
        before = now;
        lane.start();
    }
    const auto elapsed = base::now_ns() - begin;
    if (part.order.action == Action::get) verify_gets(part, incoming, tally);
    return elapsed;
}

}  // namespace railmux::tools

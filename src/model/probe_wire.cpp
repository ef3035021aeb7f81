#include "model/probe_wire.hpp"

#include <algorithm>

#include "base/bytes.hpp"

namespace railmux::model {

namespace {

std::uint64_t clamped(base::Nanoseconds time) noexcept {
    return static_cast<std::uint64_t>(std::clamp<base::Nanoseconds>(time, 0, ProbeReply::max_time));
}

template <typename Message>
bool puts_well(const Message& message) noexcept {
    return message.put == 0 || (message.bytes == 0 && message.put <= ProbeMemory::largest);
}

bool is_time(std::uint64_t ns) noexcept { return ns <= static_cast<std::uint64_t>(ProbeReply::max_time); }

}  // namespace

bool answers(const ProbeReply& reply, Sample& sample) noexcept {
    if (reply.train != sample.train.id || reply.bytes + reply.put != sample.train.bytes) return false;
    sample.mirror_held = reply.held;
    sample.mirror_blind = reply.blind;
    sample.mirror_receive_cpu = reply.receive_cpu;
    return true;
}

std::optional<ProbeRequest> parse_request(std::span<const std::byte> frame) noexcept {
    base::Reader in(frame);
    ProbeRequest request;
    request.train = in.read<std::uint32_t>();
    request.n = in.read<std::uint16_t>();
    request.index = in.read<std::uint16_t>();
    request.bytes = in.read<std::uint32_t>();
    request.put = in.read<std::uint32_t>();
    if (!in.ok() || in.left() != request.bytes || !puts_well(request)) return std::nullopt;
    if (request.n == 0 || request.n > ProbeRequest::max_n || request.index >= request.n) return std::nullopt;
    return request;
}

std::optional<ProbeReply> parse_reply(std::span<const std::byte> frame) noexcept {
    base::Reader in(frame);
    ProbeReply reply;
    reply.train = in.read<std::uint32_t>();
    reply.put = in.read<std::uint32_t>();
    reply.bytes = in.read<std::uint64_t>();
    const auto held = in.read<std::uint64_t>();
    const auto blind = in.read<std::uint64_t>();
    const auto receive_cpu = in.read<std::uint64_t>();
    if (!in.ok() || in.left() != reply.bytes || !puts_well(reply)) return std::nullopt;
    if (!is_time(held) || !is_time(blind) || !is_time(receive_cpu)) return std::nullopt;
    reply.held = static_cast<base::Nanoseconds>(held);
    reply.blind = static_cast<base::Nanoseconds>(blind);
    reply.receive_cpu = static_cast<base::Nanoseconds>(receive_cpu);
    return reply;
}

std::optional<ProbeMemory> parse_memory(std::span<const std::byte> frame) noexcept {
    base::Reader in(frame);
    ProbeMemory memory;
    memory.id = in.read<std::uint64_t>();
    memory.secret = in.read<std::uint64_t>();
    memory.bytes = in.read<std::uint64_t>();
    if (!in.ok() || in.left() != 0 || memory.bytes > ProbeMemory::largest) return std::nullopt;
    return memory;
}

std::array<std::byte, ProbeRequest::size> encode(const ProbeRequest& request) noexcept {
    std::array<std::byte, ProbeRequest::size> bytes{};
    base::store(bytes.data(), request.train);
    base::store(bytes.data() + 4, request.n);
    base::store(bytes.data() + 6, request.index);
    base::store(bytes.data() + 8, request.bytes);
    base::store(bytes.data() + 12, request.put);
    return bytes;
}

std::array<std::byte, ProbeReply::size> encode(const ProbeReply& reply) noexcept {
    std::array<std::byte, ProbeReply::size> bytes{};
    base::store(bytes.data(), reply.train);
    base::store(bytes.data() + 4, reply.put);
    base::store(bytes.data() + 8, reply.bytes);
    base::store(bytes.data() + 16, clamped(reply.held));
    base::store(bytes.data() + 24, clamped(reply.blind));
    base::store(bytes.data() + 32, clamped(reply.receive_cpu));
    return bytes;
}

std::array<std::byte, ProbeMemory::size> encode(const ProbeMemory& memory) noexcept {
    std::array<std::byte, ProbeMemory::size> bytes{};
    base::store(bytes.data(), memory.id);
    base::store(bytes.data() + 8, memory.secret);
    base::store(bytes.data() + 16, memory.bytes);
    return bytes;
}

}  // namespace railmux::model

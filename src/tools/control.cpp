#include "tools/control.hpp"

#include <fmt/format.h>

#include <railmux/error.hpp>

#include "base/bytes.hpp"

namespace railmux::tools {
namespace {

constexpr std::size_t text_limit = control_limit - 128;  // 128: more than all fixed fields together

void check_version(std::uint32_t version) {
    if (version == control_version) return;
    throw Error(ErrorCode::wrong_version,
                fmt::format("the other side's tool speaks version {}, this one {}", version, control_version),
                "use the same railmux on both sides");
}

[[noreturn]] void malformed(std::string_view what) {
    throw Error(ErrorCode::protocol, fmt::format("the other side sent a malformed {}", what),
                "use the railmux command on both sides");
}

}  // namespace

std::vector<std::byte> encode(const Order& order) {
    base::Writer writer;
    writer.write(control_version)
        .write(static_cast<std::uint8_t>(order.action))
        .write(static_cast<std::uint8_t>(order.direction))
        .write(static_cast<std::uint8_t>(order.check))
        .write(order.bytes)
        .write(order.count)
        .write(order.window)
        .write(order.buffers)
        .write(order.seed);
    return std::move(writer).take();
}

std::vector<std::byte> encode(const Reply& reply) {
    base::Writer writer;
    writer.write(control_version).write(reply.messages).write(reply.bytes).write(reply.faults);
    writer.append(reply.key.bytes());
    writer.text(std::string_view(reply.problem).substr(0, text_limit));
    return std::move(writer).take();
}

Order decode_order(std::span<const std::byte> bytes) {
    base::Reader reader(bytes);
    check_version(reader.read<std::uint32_t>());
    const auto action = reader.read<std::uint8_t>();
    const auto direction = reader.read<std::uint8_t>();
    const auto check = reader.read<std::uint8_t>();
    Order order;
    order.bytes = reader.read<std::uint64_t>();
    order.count = reader.read<std::uint64_t>();
    order.window = reader.read<std::uint64_t>();
    order.buffers = reader.read<std::uint64_t>();
    order.seed = reader.read<std::uint64_t>();
    if (!reader.done() || action > 5 || direction > 1 || check > 1 || order.window == 0 || order.buffers == 0)
        malformed("order");
    order.action = static_cast<Action>(action);
    order.direction = static_cast<Direction>(direction);
    order.check = static_cast<Check>(check);
    return order;
}

Reply decode_reply(std::span<const std::byte> bytes) {
    base::Reader reader(bytes);
    check_version(reader.read<std::uint32_t>());
    Reply reply;
    reply.messages = reader.read<std::uint64_t>();
    reply.bytes = reader.read<std::uint64_t>();
    reply.faults = reader.read<std::uint64_t>();
    if (const auto key = reader.take(RemoteKey::size); !key.empty()) reply.key = RemoteKey::from(key);
    reply.problem = reader.text(text_limit);
    if (!reader.done()) malformed("reply");
    return reply;
}

}  // namespace railmux::tools

#include "transports/verbs/address.hpp"

#include <netinet/in.h>

#include "base/bytes.hpp"

namespace railmux::transports::verbs {

namespace {

constexpr std::uint8_t version = 1;  // of this address, and of what is said over the links (docs/protocol.md)

}  // namespace

std::vector<std::byte> RailAddress::encode() const {
    base::Writer out;
    out.write(version).write(host).write(at.version()).write(at.prefix);
    out.write(full_port).write(short_port).append(std::as_bytes(std::span(&at.bytes, 1)));
    return std::move(out).take();
}

std::optional<RailAddress> RailAddress::parse(std::span<const std::byte> bytes) {
    base::Reader in(bytes);
    RailAddress address;
    if (in.read<std::uint8_t>() != version) return std::nullopt;
    address.host = in.read<std::uint64_t>();
    const auto family = in.read<std::uint8_t>();
    const auto prefix = in.read<std::uint8_t>();
    address.full_port = in.read<std::uint16_t>();
    address.short_port = in.read<std::uint16_t>();
    const auto at = base::IpAddress::parse(family, prefix, in.take(sizeof(in6_addr)));
    if (!in.done() || !at || address.full_port == 0 || address.short_port == 0) return std::nullopt;
    address.at = *at;
    return address;
}

}  // namespace railmux::transports::verbs

#include "transports/tcp/address.hpp"

#include <netinet/in.h>

#include "base/bytes.hpp"

namespace railmux::transports::tcp {

namespace {
constexpr std::uint8_t version = 1;
constexpr std::size_t max_endpoints = 8;
}  // namespace

std::string Endpoint::text() const {
    return (at.family == AF_INET6 ? "[" + at.text() + "]" : at.text()) + ":" + std::to_string(port);
}

Endpoint Endpoint::from_sockaddr(const sockaddr_storage& storage) noexcept {
    const auto& generic = reinterpret_cast<const sockaddr&>(storage);
    const auto port = generic.sa_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(storage).sin_port
                                                   : reinterpret_cast<const sockaddr_in6&>(storage).sin6_port;
    return {base::IpAddress::from_sockaddr(generic), ntohs(port)};
}

std::vector<std::byte> RailAddress::encode() const {
    base::Writer out;
    out.write(version).write(host).write(static_cast<std::uint8_t>(loopback ? 1 : 0));
    out.write(static_cast<std::uint8_t>(endpoints.size()));
    for (const auto& endpoint : endpoints) {
        out.write(endpoint.at.version()).write(endpoint.at.prefix);
        out.write(endpoint.port).append(std::as_bytes(std::span(&endpoint.at.bytes, 1)));
    }
    return std::move(out).take();
}

std::optional<RailAddress> RailAddress::parse(std::span<const std::byte> bytes) {
    base::Reader in(bytes);
    RailAddress address;
    if (in.read<std::uint8_t>() != version) return std::nullopt;
    address.host = in.read<std::uint64_t>();
    const auto loopback = in.read<std::uint8_t>();
    const std::size_t count = in.read<std::uint8_t>();
    if (!in.ok() || loopback > 1 || count > max_endpoints) return std::nullopt;
    address.loopback = loopback == 1;
    for (std::size_t i = 0; i < count; ++i) {
        const auto family = in.read<std::uint8_t>();
        const auto prefix = in.read<std::uint8_t>();
        const auto port = in.read<std::uint16_t>();
        const auto at = base::IpAddress::parse(family, prefix, in.take(sizeof(in6_addr)));
        if (!in.ok() || !at || port == 0) return std::nullopt;
        address.endpoints.push_back({*at, port});
    }
    if (!in.done()) return std::nullopt;
    return address;
}

}  // namespace railmux::transports::tcp

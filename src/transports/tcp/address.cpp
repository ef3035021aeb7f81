#include "transports/tcp/address.hpp"

#include <arpa/inet.h>

#include <array>
#include <cstring>

#include "base/bytes.hpp"

namespace railmux::transports::tcp {

namespace {
constexpr std::uint8_t version = 1;
constexpr std::size_t max_endpoints = 8;
}  // namespace

std::string Endpoint::host() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(family, &bytes, text.data(), text.size());
    return text.data();
}

std::string Endpoint::text() const {
    return (family == AF_INET6 ? "[" + host() + "]" : host()) + ":" + std::to_string(port);
}

in6_addr Endpoint::network_bytes() const noexcept {
    auto masked = bytes;
    for (unsigned bit = prefix; bit < 8 * sizeof masked; ++bit) {
        auto& byte = masked.s6_addr[bit / 8];
        byte = static_cast<std::uint8_t>(byte & ~(0x80U >> (bit % 8)));
    }
    return masked;
}

std::string Endpoint::network() const {
    const Endpoint masked{.family = family, .prefix = prefix, .bytes = network_bytes()};
    return masked.host() + "/" + std::to_string(prefix);
}

socklen_t Endpoint::to_sockaddr(sockaddr_storage& storage) const noexcept {
    storage = {};
    if (family == AF_INET) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        std::memcpy(&v4.sin_addr, &bytes, sizeof v4.sin_addr);
        return sizeof v4;
    }
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_addr = bytes;
    return sizeof v6;
}

Endpoint Endpoint::from_sockaddr(const sockaddr_storage& storage) noexcept {
    Endpoint endpoint;
    endpoint.family = storage.ss_family;
    if (storage.ss_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
        endpoint.port = ntohs(v4.sin_port);
        std::memcpy(&endpoint.bytes, &v4.sin_addr, sizeof v4.sin_addr);
    } else {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
        endpoint.port = ntohs(v6.sin6_port);
        endpoint.bytes = v6.sin6_addr;
    }
    return endpoint;
}

std::vector<std::byte> RailAddress::encode() const {
    base::Writer out;
    out.write(version).write(host).write(static_cast<std::uint8_t>(loopback ? 1 : 0));
    out.write(static_cast<std::uint8_t>(endpoints.size()));
    for (const auto& endpoint : endpoints) {
        out.write(static_cast<std::uint8_t>(endpoint.family == AF_INET ? 4 : 6)).write(endpoint.prefix);
        out.write(endpoint.port).append(std::as_bytes(std::span(&endpoint.bytes, 1)));
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
        Endpoint endpoint;
        const auto family = in.read<std::uint8_t>();
        endpoint.family = family == 4 ? AF_INET : AF_INET6;
        endpoint.prefix = in.read<std::uint8_t>();
        endpoint.port = in.read<std::uint16_t>();
        const auto part = in.take(sizeof endpoint.bytes);
        const bool known = (family == 4 && endpoint.prefix <= 32) || (family == 6 && endpoint.prefix <= 128);
        if (!in.ok() || !known || endpoint.port == 0) return std::nullopt;
        std::memcpy(&endpoint.bytes, part.data(), family == 4 ? 4 : sizeof endpoint.bytes);
        address.endpoints.push_back(endpoint);
    }
    if (!in.done()) return std::nullopt;
    return address;
}

bool same_subnet(const Endpoint& a, const Endpoint& b, std::uint8_t prefix) noexcept {
    if (a.family != b.family) return false;
    for (unsigned bit = 0; bit < prefix; ++bit) {
        const auto mask = static_cast<std::uint8_t>(0x80U >> (bit % 8));
        if (((a.bytes.s6_addr[bit / 8] ^ b.bytes.s6_addr[bit / 8]) & mask) != 0) return false;
    }
    return true;
}

}  // namespace railmux::transports::tcp

#include "transports/verbs/address.hpp"

#include <arpa/inet.h>

#include <array>
#include <cstring>

#include "base/bytes.hpp"

namespace railmux::transports::verbs {

namespace {

constexpr std::uint8_t version = 1;  // of this address, and of what is said over the links (docs/protocol.md)

PortAddress masked(const PortAddress& address) noexcept {
    auto network = address;
    for (unsigned bit = address.prefix; bit < 8 * sizeof network.bytes; ++bit) {
        auto& byte = network.bytes.s6_addr[bit / 8];
        byte = static_cast<std::uint8_t>(byte & ~(0x80U >> (bit % 8)));
    }
    return network;
}

}  // namespace

std::string PortAddress::text() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(family, &bytes, text.data(), text.size());
    return text.data();
}

std::string PortAddress::network() const { return masked(*this).text() + "/" + std::to_string(prefix); }

sockaddr_storage PortAddress::to_sockaddr(std::uint16_t port) const noexcept {
    sockaddr_storage storage{};
    if (family == AF_INET) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        std::memcpy(&v4.sin_addr, &bytes, sizeof v4.sin_addr);
    } else {
        auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(port);
        v6.sin6_addr = bytes;
    }
    return storage;
}

bool PortAddress::same_network(const PortAddress& other) const noexcept {
    if (family != other.family) return false;
    auto theirs = other;
    theirs.prefix = prefix;
    const auto a = masked(*this).bytes, b = masked(theirs).bytes;
    return std::memcmp(&a, &b, sizeof a) == 0;
}

std::vector<std::byte> RailAddress::encode() const {
    base::Writer out;
    out.write(version).write(host).write(static_cast<std::uint8_t>(at.family == AF_INET ? 4 : 6)).write(at.prefix);
    out.write(full_port).write(short_port).append(std::as_bytes(std::span(&at.bytes, 1)));
    return std::move(out).take();
}

std::optional<RailAddress> RailAddress::parse(std::span<const std::byte> bytes) {
    base::Reader in(bytes);
    RailAddress address;
    if (in.read<std::uint8_t>() != version) return std::nullopt;
    address.host = in.read<std::uint64_t>();
    const auto family = in.read<std::uint8_t>();
    address.at.family = family == 4 ? AF_INET : AF_INET6;
    address.at.prefix = in.read<std::uint8_t>();
    address.full_port = in.read<std::uint16_t>();
    address.short_port = in.read<std::uint16_t>();
    const auto part = in.take(sizeof address.at.bytes);
    const bool known = (family == 4 && address.at.prefix <= 32) || (family == 6 && address.at.prefix <= 128);
    if (!in.done() || !known || address.full_port == 0 || address.short_port == 0) return std::nullopt;
    std::memcpy(&address.at.bytes, part.data(), family == 4 ? 4 : sizeof address.at.bytes);
    return address;
}

}  // namespace railmux::transports::verbs

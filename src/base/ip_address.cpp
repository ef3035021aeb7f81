#include "base/ip_address.hpp"

#include <arpa/inet.h>

#include <array>
#include <cstring>

namespace railmux::base {

std::optional<IpAddress> IpAddress::parse(std::uint8_t family, std::uint8_t prefix, std::span<const std::byte> bytes) {
    const bool known = (family == 4 && prefix <= 32) || (family == 6 && prefix <= 128);
    IpAddress address{.family = family == 4 ? AF_INET : AF_INET6, .prefix = prefix};
    if (!known || bytes.size() != sizeof address.bytes) return std::nullopt;
    std::memcpy(&address.bytes, bytes.data(), family == 4 ? 4 : sizeof address.bytes);
    return address;
}

IpAddress IpAddress::from_sockaddr(const sockaddr& storage) noexcept {
    IpAddress address{.family = storage.sa_family};
    if (address.family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
        std::memcpy(&address.bytes, &v4.sin_addr, sizeof v4.sin_addr);
    } else {
        address.bytes = reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
    }
    return address;
}

std::string IpAddress::text() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(family, &bytes, text.data(), text.size());
    return text.data();
}

std::string IpAddress::network() const { return masked().text() + "/" + std::to_string(prefix); }

IpAddress IpAddress::masked() const noexcept {
    auto network = *this;
    for (unsigned bit = prefix; bit < 8 * sizeof network.bytes; ++bit) {
        auto& byte = network.bytes.s6_addr[bit / 8];
        byte = static_cast<std::uint8_t>(byte & ~(0x80U >> (bit % 8)));
    }
    return network;
}

bool IpAddress::same_address(const IpAddress& other) const noexcept {
    return family == other.family && std::memcmp(&bytes, &other.bytes, sizeof bytes) == 0;
}

bool IpAddress::same_network(const IpAddress& other) const noexcept {
    auto theirs = other;
    theirs.prefix = prefix;
    return masked().same_address(theirs.masked());
}

sockaddr_storage IpAddress::to_sockaddr(std::uint16_t port) const noexcept {
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

}  // namespace railmux::base

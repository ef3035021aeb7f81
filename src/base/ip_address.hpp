// IpAddress: an IPv4 or IPv6 address with the length of its network's prefix.
//
// Threads: values.
// Lifetime: values.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace railmux::base {

struct IpAddress {
    int family = AF_INET;
    std::uint8_t prefix = 0;
    in6_addr bytes{};  // IPv4 in the first four

    /// From the wire: the family as 4 or 6, the prefix, 16 bytes. Nothing when malformed.
    [[nodiscard]] static std::optional<IpAddress> parse(std::uint8_t family, std::uint8_t prefix,
                                                        std::span<const std::byte> bytes);
    /// Of an AF_INET or AF_INET6 address, without a prefix.
    [[nodiscard]] static IpAddress from_sockaddr(const sockaddr& storage) noexcept;
    [[nodiscard]] std::uint8_t version() const noexcept { return family == AF_INET ? 4 : 6; }

    [[nodiscard]] std::string text() const;     // "10.77.0.1", "fd77::1"
    [[nodiscard]] std::string network() const;  // "10.77.0.0/24"
    [[nodiscard]] IpAddress masked() const noexcept;
    /// The same address; the prefixes may differ.
    [[nodiscard]] bool same_address(const IpAddress& other) const noexcept;
    /// Whether `other` is in this one's network.
    [[nodiscard]] bool same_network(const IpAddress& other) const noexcept;
    [[nodiscard]] sockaddr_storage to_sockaddr(std::uint16_t port) const noexcept;
};

}  // namespace railmux::base

// RailAddress: where a verbs rail listens, as other processes are told.
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
#include <vector>

namespace railmux::transports::verbs {

/// An address of a port's network interface, as 16 bytes: IPv4 in the first four.
struct PortAddress {
    int family = AF_INET;
    std::uint8_t prefix = 0;
    in6_addr bytes{};

    [[nodiscard]] std::string text() const;     // "10.77.0.1"
    [[nodiscard]] std::string network() const;  // "10.77.0.0/24"
    [[nodiscard]] sockaddr_storage to_sockaddr(std::uint16_t port) const noexcept;
    [[nodiscard]] bool same_network(const PortAddress& other) const noexcept;
};

/// rdma_cm leaves 56 bytes to a request, and does not say how many of them mean something. A hello of a session has all 56,
/// so there is no room for a length: such hellos go to a port of their own. Others go to the second port, behind a byte that
/// holds their length.
struct RailAddress {
    std::uint64_t host = 0;  // base::host_identity
    PortAddress at;
    std::uint16_t full_port = 0;
    std::uint16_t short_port = 0;

    [[nodiscard]] std::vector<std::byte> encode() const;
    /// Nothing when malformed.
    [[nodiscard]] static std::optional<RailAddress> parse(std::span<const std::byte> bytes);
};

}  // namespace railmux::transports::verbs

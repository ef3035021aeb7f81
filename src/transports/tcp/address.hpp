// RailAddress: where a tcp rail listens, as other processes are told: which host, which addresses and ports.
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

namespace railmux::transports::tcp {

struct Endpoint {
    int family = AF_INET;
    std::uint8_t prefix = 0;
    std::uint16_t port = 0;
    in6_addr bytes{};  // IPv4 in the first four

    [[nodiscard]] std::string host() const;     // "10.77.0.1", "fd77::1"
    [[nodiscard]] std::string text() const;     // "10.77.0.1:5000", "[fd77::1]:5000"
    [[nodiscard]] std::string network() const;  // "10.77.0.0/24"
    [[nodiscard]] in6_addr network_bytes() const noexcept;
    [[nodiscard]] socklen_t to_sockaddr(sockaddr_storage& storage) const noexcept;
    [[nodiscard]] static Endpoint from_sockaddr(const sockaddr_storage& storage) noexcept;
};

/// At most 171 bytes encoded: eight endpoints, of which a rail uses two.
struct RailAddress {
    std::uint64_t host = 0;  // base::host_identity
    bool loopback = false;
    std::vector<Endpoint> endpoints;

    [[nodiscard]] std::vector<std::byte> encode() const;
    /// Nothing when malformed.
    [[nodiscard]] static std::optional<RailAddress> parse(std::span<const std::byte> bytes);
};

/// Whether both are of one family and agree in the first `prefix` bits.
[[nodiscard]] bool same_subnet(const Endpoint& a, const Endpoint& b, std::uint8_t prefix) noexcept;

}  // namespace railmux::transports::tcp

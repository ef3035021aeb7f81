// RailAddress: where a tcp rail listens, as other processes are told: which host, which addresses and ports.
//
// Threads: values.
// Lifetime: values.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ip_address.hpp"

namespace railmux::transports::tcp {

struct Endpoint {
    base::IpAddress at;
    std::uint16_t port = 0;

    [[nodiscard]] std::string text() const;  // "10.77.0.1:5000", "[fd77::1]:5000"
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

}  // namespace railmux::transports::tcp

// RailAddress: where a verbs rail listens, as other processes are told.
//
// Threads: values.
// Lifetime: values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ip_address.hpp"

namespace railmux::transports::verbs {

/// rdma_cm leaves 56 bytes to a request, and does not say how many of them mean something. A hello of a session has all 56,
/// so there is no room for a length: such hellos go to a port of their own. Others go to the second port, behind a byte that
/// holds their length.
struct RailAddress {
    std::uint64_t host = 0;  // base::host_identity
    base::IpAddress at;
    std::uint16_t full_port = 0;
    std::uint16_t short_port = 0;

    [[nodiscard]] std::vector<std::byte> encode() const;
    /// Nothing when malformed.
    [[nodiscard]] static std::optional<RailAddress> parse(std::span<const std::byte> bytes);
};

}  // namespace railmux::transports::verbs

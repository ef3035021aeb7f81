// RailAddress: where an ofi rail is reached, as other processes are told; and whether one reaches the other.
//
// Threads: values.
// Lifetime: values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transports/ofi/wire.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::ofi {

struct Port;

inline constexpr std::size_t longest_name = 64;  // of a provider or a fabric
inline constexpr std::size_t longest_endpoint =
    max_address - 2 * longest_name - 34;  // and what encode() puts around the three

struct RailAddress {
    std::uint64_t host = 0;  // base::host_identity
    std::uint32_t process = 0;
    std::uint64_t owner = 0;                      // the transport within the process
    std::uint32_t format = 0;                     // FI_SOCKADDR_IN, ...
    std::string provider;                         // "tcp;ofi_rxm"
    std::string fabric;                           // "10.77.0.0/24"; what it means is the provider's affair
    std::uint32_t message_bytes = least_message;  // of the largest that is received there
    std::vector<std::byte> endpoint;

    [[nodiscard]] static RailAddress of(const Port& port, std::uint64_t owner);
    [[nodiscard]] std::vector<std::byte> encode() const;
    /// Nothing when malformed.
    [[nodiscard]] static std::optional<RailAddress> parse(std::span<const std::byte> bytes);

    /// Whether this rail, ours, reaches the other.
    [[nodiscard]] Reachability reach(const RailAddress& other) const;
    [[nodiscard]] bool stays_on_host() const noexcept;
};

}  // namespace railmux::transports::ofi

// NodeAddress: where a rail is found by the processes of its node, and who they must be to share memory with it.
//
// A rail listens on a unix socket of the abstract namespace: that belongs to the network namespace, needs no file, and is gone
// with the process, however it ends. Everything else passes through that socket.
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

#include "transports/transport.hpp"

namespace railmux::transports::shm {

struct NodeAddress {
    std::uint64_t host = 0;  // base::host_identity: boot and network namespace
    std::uint32_t users =
        0;  // number of the user namespace, in which `user` has its meaning; the kernel's have 32 bits
    std::uint32_t user = 0;
    std::uint32_t name = 0;  // random: of the socket

    /// Of this process, with a new name. Throws Error(system) without a source of random numbers.
    [[nodiscard]] static NodeAddress make();

    [[nodiscard]] std::vector<std::byte> encode() const;
    /// Nothing when malformed.
    [[nodiscard]] static std::optional<NodeAddress> parse(std::span<const std::byte> bytes);

    /// Whether a rail with this address can share memory with that other one.
    [[nodiscard]] Reachability reach(const NodeAddress& other) const;

    /// Without the leading zero byte that makes it abstract.
    [[nodiscard]] std::string socket_name() const;
};

}  // namespace railmux::transports::shm

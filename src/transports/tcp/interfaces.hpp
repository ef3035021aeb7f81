// Interfaces: what the kernel says of each network interface, and whether it makes a rail.
//
// Judged by the kernel's link kind, never by name: what leads to containers, tunnels or nowhere is off by default.
// Threads: pure functions; each call asks the kernel anew.
// Lifetime: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ip_address.hpp"

namespace railmux::transports::tcp {

struct InterfaceAddress {
    base::IpAddress at;
    bool link_local = false;
    bool tentative = false;      // IPv6: duplicates are still being looked for, or one was found; nobody can bind to it
    bool second_choice = false;  // IPv6: temporary, or soon to go

    [[nodiscard]] bool usable() const noexcept { return !link_local && !tentative; }
};

struct Interface {
    std::string name;
    int index = 0;
    std::string kind;  // IFLA_INFO_KIND, "loopback", or "ethernet" for what has none
    bool up = false;
    bool carrier = false;
    bool loopback = false;
    bool by_processors = false;  // the loopback as itself; an address of it that was named stands for a network
    std::string master;          // enslaved to
    std::string master_kind;
    std::vector<InterfaceAddress> addresses;
    std::uint64_t speed_bps = 0;
    int numa_node = -1;

    /// Whether it has this address, and others may send to it.
    [[nodiscard]] bool has(const base::IpAddress& address) const;
    /// Why it should not be used unless asked for by name; empty if nothing speaks against it.
    [[nodiscard]] std::string doubt() const;
    /// Why it cannot be used at all; empty if it can.
    [[nodiscard]] std::string obstacle() const;
};

/// All interfaces of this network namespace. Throws Error(system).
[[nodiscard]] std::vector<Interface> list_interfaces();

/// Bytes the interface has sent, by its own counter.
[[nodiscard]] std::optional<std::uint64_t> bytes_sent_by(int interface_index);

}  // namespace railmux::transports::tcp

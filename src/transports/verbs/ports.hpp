// Ports: what verbs devices this host has, port by port, and by which address and GID each is used.
//
// Threads: pure functions; each call asks the devices anew.
// Lifetime: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transports/verbs/address.hpp"

struct ibv_context;

namespace railmux::transports::verbs {

/// One port of one device.
struct Port {
    std::string device;  // "mlx5_0"
    std::uint8_t number = 1;
    std::string kind;         // "RoCE v2", "InfiniBand", "iWARP"
    std::string interface;    // "eth1"
    std::uint32_t gid = 0;    // index of the GID in use
    base::IpAddress address;  // which it stands for
    std::string choice;       // how that GID was chosen, for people
    std::string obstacle;     // why the port cannot be used; empty if it can
    std::string cure;
    std::uint64_t speed_bps = 0;
    int numa_node = -1;

    [[nodiscard]] std::string name() const { return device + ":" + std::to_string(number); }  // "mlx5_0:1"
};

/// All ports. Throws Error where the kernel has no verbs at all.
[[nodiscard]] std::vector<Port> list_ports();

/// A port as it is now: by the same GID, if it still has that, else by the best of those that it has.
[[nodiscard]] Port look_again(ibv_context* device, const Port& before);

/// Whether the port and its interface are up now. The kernel takes an interface down first, and its port a little later.
[[nodiscard]] bool works(ibv_context* device, const Port& port);

/// Whether both are by the same GID. One that went away and came back has another index, as long as somebody uses the old.
[[nodiscard]] bool same_gid(const Port& a, const Port& b) noexcept;

}  // namespace railmux::transports::verbs

// Paths: by which of its addresses, and how well, a rail reaches a rail elsewhere, as the kernel's routes have it.
//
// Threads: pure functions; each call asks the kernel anew.
// Lifetime: values.
#pragma once

#include <string>

#include "transports/tcp/address.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::tcp {

/// This end of a path: where the rail listens, and the interface its packets should leave by.
struct LocalEnd {
    const RailAddress& address;
    const std::string& interface;
    int interface_index = 0;
};

struct Path {
    Reachability how;
    bool found = false;  // a pair of one family; else from and to mean nothing
    Endpoint from;
    Endpoint to;
};

/// The best of all pairs of endpoints. A pair may be found and yet reach never.
[[nodiscard]] Path best_path(const LocalEnd& here, const RailAddress& there);

/// Whether packets from an endpoint to its own subnet leave by its interface: direct, or never with the cure, because another
/// interface in the same subnet takes them. Asks for addresses there that are not this host's; direct when there are none.
[[nodiscard]] Reachability judge_subnet(const base::IpAddress& ours, const std::string& interface, int interface_index);

/// Whether the kernel keeps packets between the two on this host.
[[nodiscard]] bool stays_on_host(const base::IpAddress& from, const base::IpAddress& to);

/// Whether packets between the two leave by another interface than this one, as far as the kernel's routes tell.
[[nodiscard]] bool leaves_elsewhere(const base::IpAddress& from, const base::IpAddress& to, int interface_index);

/// The commands after which packets from `source` leave by its own interface although another is in the same subnet.
[[nodiscard]] std::string same_subnet_cure(const base::IpAddress& source, const std::string& interface,
                                           int interface_index);

}  // namespace railmux::transports::tcp

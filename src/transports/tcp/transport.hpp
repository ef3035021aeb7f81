// The tcp transport: one rail for each usable network interface.
//
// Threads: one thread at a time.
// Lifetime: outlives its rails; refers to config and log.
#pragma once

#include <memory>

#include "transports/transport.hpp"

namespace railmux::transports::tcp {

[[nodiscard]] std::unique_ptr<Transport> make_transport(const Services& services);

}  // namespace railmux::transports::tcp

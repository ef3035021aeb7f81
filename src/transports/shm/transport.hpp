// The shm transport: one rail by which the processes of a node reach each other through memory.
//
// Threads: one thread at a time.
// Lifetime: outlives its rails; refers to the configuration and the log.
#pragma once

#include <memory>

#include "transports/transport.hpp"

namespace railmux::transports::shm {

[[nodiscard]] std::unique_ptr<Transport> make_transport(const Services& services);

}  // namespace railmux::transports::shm

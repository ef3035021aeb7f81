// The verbs transport: one rail for each port of an InfiniBand or RoCE device.
//
// Threads: one thread at a time.
// Lifetime: outlives its rails; refers to configuration and log.
#pragma once

#include <memory>

#include "transports/transport.hpp"

namespace railmux::transports::verbs {

[[nodiscard]] std::unique_ptr<Transport> make_transport(const Services& services);

}  // namespace railmux::transports::verbs

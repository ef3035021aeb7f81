// The ofi transport: rails over the domains of libfabric's providers.
//
// Threads: one thread at a time.
// Lifetime: outlives its rails; refers to configuration and log.
#pragma once

#include <memory>

#include "transports/transport.hpp"

namespace railmux::transports::ofi {

[[nodiscard]] std::unique_ptr<Transport> make_transport(const Services& services);

}  // namespace railmux::transports::ofi

// The self transport: one rail by which a process reaches itself.
//
// Threads: one thread at a time.
// Lifetime: outlives its rails; refers to the log.
#pragma once

#include <memory>

#include "transports/transport.hpp"

namespace railmux::transports::self {

[[nodiscard]] std::unique_ptr<Transport> make_transport(const Services& services);

}  // namespace railmux::transports::self

// What tells a rail again: in later runs, and to the processes at its other end.
//
// Threads: pure functions; machine_identity reads files.
// Lifetime: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "transports/transport.hpp"

namespace railmux::rails {

/// This machine among others, also after a restart: its name, and the id it was given when it was installed. Cloned machines
/// differ in the name, containers in the name or their addresses.
[[nodiscard]] std::string machine_identity();

/// A hash, never 0, of the machine and of all that a rail's model depends on: name, traits().identity and link speed.
[[nodiscard]] std::uint64_t rail_identity(std::string_view machine, const transports::RailTraits& traits);

}  // namespace railmux::rails

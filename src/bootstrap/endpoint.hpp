// Where to listen and whom to reach at start-up: "PORT", "HOST:PORT", "[V6]:PORT", "unix:PATH".
//
// Threads: pure functions; resolving a name may block.
// Lifetime: the caller owns the sockets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"

namespace railmux::bootstrap {

struct ListeningSocket {
    base::FileDescriptor socket;
    std::uint16_t port = 0;  // 0 for a Unix socket
};

/// Listens; without a host on every address of both families. Throws Error(address_in_use, invalid_argument).
[[nodiscard]] std::vector<ListeningSocket> listen_at(std::string_view where);

/// A connected, non-blocking socket to the first address of `where` that answers before `deadline`; a refused connection
/// is tried again, so that the two sides may start in any order. Throws Error(unreachable, invalid_argument).
[[nodiscard]] base::FileDescriptor connect_to(std::string_view where, base::Nanoseconds deadline);

}  // namespace railmux::bootstrap

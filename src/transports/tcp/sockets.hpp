// Sockets: making listening, connecting and accepted sockets, set up as the parameters say.
//
// Threads: pure functions over descriptors.
// Lifetime: the caller owns what is returned.
#pragma once

#include <cstdint>
#include <string>

#include "base/file_descriptor.hpp"
#include "base/result.hpp"
#include "base/values.hpp"
#include "transports/tcp/address.hpp"

#include <railmux/config.hpp>

namespace railmux::transports::tcp {

struct SocketOptions {
    base::PortRange ports;
    std::uint64_t send_buffer = 0;
    std::uint64_t receive_buffer = 0;
    bool nodelay = true;
    std::uint64_t busy_poll_us = 0;

    [[nodiscard]] static SocketOptions read(const Config& config);
};

struct Listener {
    base::FileDescriptor socket;
    Endpoint endpoint;  // with the port it got
};

/// Listens on the endpoint's address, on the first free port of the range. Throws Error(address_in_use, system).
[[nodiscard]] Listener listen_on(Endpoint endpoint, const SocketOptions& options);

/// Starts connecting from `source` (its address; any port). The socket turns writable when it is over.
[[nodiscard]] base::Result<base::FileDescriptor> start_connect(const Endpoint& source, const Endpoint& to,
                                                               const SocketOptions& options);

/// The next connection, or none.
[[nodiscard]] base::FileDescriptor accept_next(int listener, const SocketOptions& options, Endpoint& from);

/// The pending error of a socket, as text; empty when there is none.
[[nodiscard]] std::string pending_error(int socket);

/// "10.77.0.1:40022 - 10.77.0.2:5000".
[[nodiscard]] std::string describe_socket(int socket);

}  // namespace railmux::transports::tcp

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
#include "transports/tcp/early_acks.hpp"

#include <railmux/config.hpp>

namespace railmux::transports::tcp {

struct SocketOptions {
    base::PortRange ports;
    std::uint64_t send_buffer = 0;
    std::uint64_t receive_buffer = 0;
    std::string congestion;  // of TCP, by the kernel's name for it; empty: the kernel's choice
    bool nodelay = true;
    std::uint64_t busy_poll_us = 0;

    /// Throws Error(invalid_config) for a congestion control that sockets may not have here.
    [[nodiscard]] static SocketOptions read(const Config& config);
};

struct Listener {
    base::FileDescriptor socket;
    Endpoint endpoint;  // with the port it got
};

/// Listens on the endpoint's address: on its port if that is given and free, else on the first free one of the range.
/// Throws Error(address_in_use, system).
[[nodiscard]] Listener listen_on(const Endpoint& endpoint, const SocketOptions& options);

/// Starts connecting from `source` (its address; any port). The socket turns writable when it is over.
[[nodiscard]] base::Result<base::FileDescriptor> start_connect(const Endpoint& source, const Endpoint& to,
                                                               const SocketOptions& options);

/// The next connection, or none (errno).
[[nodiscard]] base::FileDescriptor accept_next(int listener, const SocketOptions& options, Endpoint& from);

/// "connection refused by 10.77.0.2:5000": why connecting there ended with this errno.
[[nodiscard]] std::string connect_failure(int code, const Endpoint& to);

/// The pending error of a socket, 0 when there is none.
[[nodiscard]] int pending_error(int socket);
/// How much a network that is slow is given of a connection at a time, in bytes: a few whole packets.
[[nodiscard]] std::size_t portion_of(int socket);
/// Whether the kernel acknowledges a message of several packets as it comes, or as it is read: by its own choice that depends
/// on what the connection has carried so far, and reading takes longer by half if an acknowledgement leaves with it. Who wants
/// it early is not told by poll or epoll of messages that have come.
void acknowledge_early(int socket, EarlyAcks::Of which) noexcept;
/// The two ends of a connected socket.
[[nodiscard]] Endpoint local_end(int socket);
[[nodiscard]] Endpoint remote_end(int socket);

/// "10.77.0.1:40022 - 10.77.0.2:5000".
[[nodiscard]] std::string describe_socket(int socket);

}  // namespace railmux::transports::tcp

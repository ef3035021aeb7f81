#include "transports/tcp/sockets.hpp"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>

namespace railmux::transports::tcp {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// The sockets are made by Asio and then released to the rail's own epoll set: what a rail waits for must be one descriptor
// that others can wait for too, and Asio does not show its own.
asio::io_context& context() {
    static thread_local asio::io_context io;  // only a factory: nothing ever runs in it
    return io;
}

tcp::endpoint to_asio(const Endpoint& endpoint) {
    if (endpoint.at.family == AF_INET) {
        asio::ip::address_v4::bytes_type bytes;
        std::memcpy(bytes.data(), &endpoint.at.bytes, bytes.size());
        return {asio::ip::address_v4(bytes), endpoint.port};
    }
    asio::ip::address_v6::bytes_type bytes;
    std::memcpy(bytes.data(), &endpoint.at.bytes, bytes.size());
    return {asio::ip::address_v6(bytes), endpoint.port};
}

using BindAddressNoPort = asio::detail::socket_option::boolean<IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT>;
using BusyPoll = asio::detail::socket_option::integer<SOL_SOCKET, SO_BUSY_POLL>;

bool set_congestion(int socket, const std::string& name) noexcept {
    return ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

void refuse_unknown_congestion(const std::string& name) {
    const base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid() || set_congestion(socket.get(), name)) return;
    throw Error(ErrorCode::invalid_config,
                fmt::format("tcp.congestion: no socket of this process may have '{}': {}", name, std::strerror(errno)),
                "see /proc/sys/net/ipv4/tcp_allowed_congestion_control, or leave it empty");
}

template <typename Socket>
void apply(Socket& socket, const SocketOptions& options) {
    error_code ignored;  // each is a wish: a kernel that does not grant it still carries the data
    if (options.send_buffer > 0) {
        socket.set_option(asio::socket_base::send_buffer_size(static_cast<int>(options.send_buffer)), ignored);
    }
    if (options.receive_buffer > 0) {
        socket.set_option(asio::socket_base::receive_buffer_size(static_cast<int>(options.receive_buffer)), ignored);
    }
    if (options.busy_poll_us > 0) socket.set_option(BusyPoll(static_cast<int>(options.busy_poll_us)), ignored);
    if (options.nodelay) socket.set_option(tcp::no_delay(true), ignored);
    if (!options.congestion.empty()) set_congestion(socket.native_handle(), options.congestion);
}

}  // namespace

SocketOptions SocketOptions::read(const Config& config) {
    SocketOptions options;
    options.ports = base::parse_ports(config.text("tcp.ports")).value_or(base::PortRange{});
    options.send_buffer = config.number("tcp.send_buffer");
    options.receive_buffer = config.number("tcp.receive_buffer");
    options.congestion = config.text("tcp.congestion");
    if (!options.congestion.empty()) refuse_unknown_congestion(options.congestion);
    options.nodelay = config.flag("tcp.nodelay");
    options.busy_poll_us = config.number("tcp.busy_poll") / 1000;
    return options;
}

namespace {

/// The listening socket, or an invalid one with its error.
base::FileDescriptor try_listening(const Endpoint& endpoint, const SocketOptions& options, error_code& error) {
    error = {};
    const auto where = to_asio(endpoint);
    tcp::acceptor acceptor(context());
    acceptor.open(where.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error && endpoint.at.family == AF_INET6) acceptor.set_option(asio::ip::v6_only(true), error);
    if (!error) apply(acceptor, options);  // accepted sockets inherit their buffers from here
    if (!error) acceptor.bind(where, error);
    if (!error) acceptor.listen(1024, error);
    if (!error) acceptor.non_blocking(true, error);
    return error ? base::FileDescriptor() : base::FileDescriptor(acceptor.release());
}

}  // namespace

Listener listen_on(const Endpoint& endpoint, const SocketOptions& options) {
    error_code error;
    const auto attempt = [&](unsigned port) {
        auto place = endpoint;
        place.port = static_cast<std::uint16_t>(port);
        auto socket = try_listening(place, options, error);
        if (socket.valid()) place.port = local_end(socket.get()).port;
        return Listener{std::move(socket), place};
    };
    if (endpoint.port != 0) {
        if (auto listener = attempt(endpoint.port); listener.socket.valid()) return listener;
    }
    for (unsigned port = options.ports.first; port <= options.ports.last; ++port) {
        if (auto listener = attempt(port); listener.socket.valid()) return listener;
        if (error != asio::error::address_in_use) break;
    }
    if (error == asio::error::address_in_use) {
        throw Error(ErrorCode::address_in_use,
                    fmt::format("every port of {}-{} is in use on {}", options.ports.first, options.ports.last,
                                endpoint.at.text()),
                    "widen tcp.ports (RAILMUX_TCP_PORTS), one port for each process of this host, or end who has them");
    }
    throw Error(ErrorCode::system, fmt::format("cannot listen on {}: {}", endpoint.at.text(), error.message()),
                "choose other ports (RAILMUX_TCP_PORTS), or do without this interface (RAILMUX_TCP_INTERFACES)");
}

base::Result<base::FileDescriptor> start_connect(const Endpoint& source, const Endpoint& to,
                                                 const SocketOptions& options) {
    error_code error;
    auto from = source;
    from.port = 0;
    tcp::socket socket(context());
    const auto target = to_asio(to);
    socket.open(target.protocol(), error);
    if (!error) {
        apply(socket, options);
        socket.set_option(BindAddressNoPort(true), error);
        socket.bind(to_asio(from), error);
    }
    if (!error) socket.non_blocking(true, error);
    // Asio's own connect would wait for the outcome even on a non-blocking socket.
    if (!error && ::connect(socket.native_handle(), target.data(), static_cast<socklen_t>(target.size())) != 0 &&
        errno != EINPROGRESS) {
        error.assign(errno, boost::system::system_category());
    }
    if (error) return Error(ErrorCode::unreachable, connect_failure(error.value(), to));
    return base::FileDescriptor(socket.release());
}

base::FileDescriptor accept_next(int listener, const SocketOptions& options, Endpoint& from) {
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    const int accepted =
        ::accept4(listener, reinterpret_cast<sockaddr*>(&storage), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted < 0) return {};
    from = Endpoint::from_sockaddr(storage);
    const int on = 1;
    if (options.nodelay) ::setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return base::FileDescriptor(accepted);
}

std::string connect_failure(int code, const Endpoint& to) {
    switch (code) {
        case ECONNREFUSED: return "connection refused by " + to.text();
        case ETIMEDOUT: return "no answer from " + to.text();
        case ECONNRESET: return "connection reset by " + to.text();
        case EHOSTUNREACH:
        case ENETUNREACH: return fmt::format("no route to {} ({})", to.text(), std::strerror(code));
        case EADDRNOTAVAIL: return fmt::format("no local port or address left towards {}", to.text());
        case EMFILE:
        case ENFILE: return "too many open files (ulimit -n)";
        default: return fmt::format("connecting to {}: {}", to.text(), std::strerror(code));
    }
}

std::size_t portion_of(int socket) {
    // With headers three quarters of the smallest bucket that shapers usually have (16 KB), and what 1 Gbit/s carries in
    // 93 us; with a quarter more (Portions) all of it but some hundred bytes.
    constexpr std::size_t usual = 8 * 1448;
    int segment = 0;
    socklen_t length = sizeof segment;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_MAXSEG, &segment, &length) != 0 || segment <= 0) return usual;
    const auto packet = static_cast<std::size_t>(segment);
    return std::max<std::size_t>((usual + packet / 2) / packet, 1) * packet;
}

void acknowledge_early(int socket, EarlyAcks::Of which) noexcept {
    // Linux, __tcp_ack_snd_check: unread bytes below this mark do not put off an acknowledgement, however the window has
    // grown. More is acknowledged as it was.
    const int mark = which == EarlyAcks::Of::none             ? 1
                     : which == EarlyAcks::Of::short_messages ? static_cast<int>(EarlyAcks::longest_short)
                                                              : static_cast<int>(EarlyAcks::longest);
    ::setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark);
}

int pending_error(int socket) {
    int code = 0;
    socklen_t length = sizeof code;
    return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &length) == 0 ? code : errno;
}

Endpoint local_end(int socket) {
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&storage), &length);
    return Endpoint::from_sockaddr(storage);
}

Endpoint remote_end(int socket) {
    sockaddr_storage storage{};
    socklen_t length = sizeof storage;
    ::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &length);
    return Endpoint::from_sockaddr(storage);
}

std::string describe_socket(int socket) { return local_end(socket).text() + " - " + remote_end(socket).text(); }

}  // namespace railmux::transports::tcp

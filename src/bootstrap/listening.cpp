// The listening half of endpoint.hpp.
#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <cerrno>
#include <cstring>

#include <railmux/error.hpp>

#include "bootstrap/endpoint.hpp"
#include "bootstrap/resolving.hpp"

namespace railmux::bootstrap {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int backlog = 1024;       // a job of that many processes may knock at once
constexpr int most_port_picks = 8;  // tries for one free port that both families have

ListeningSocket listen_unix(std::string_view path) {
    const auto address = unix_address(path);
    base::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket.get(), backlog) != 0) {
        throw Error(ErrorCode::system, fmt::format("cannot listen on {}: {}", path, std::strerror(errno)),
                    "TMPDIR names a folder where sockets can be made");
    }
    return {std::move(socket), 0};
}

ListeningSocket listen_tcp(asio::io_context& io, const tcp::endpoint& endpoint, error_code& error) {
    tcp::acceptor acceptor(io);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(backlog, error);
    if (!error) acceptor.non_blocking(true, error);
    if (error) return {};
    const auto port = acceptor.local_endpoint().port();
    return {base::FileDescriptor(acceptor.release()), port};
}

/// Every address of both families.
std::vector<tcp::endpoint> everywhere(std::uint16_t port) { return {{tcp::v4(), port}, {tcp::v6(), port}}; }

/// Listens at all endpoints, all on the port of the first; a family that this host lacks is left out.
std::vector<ListeningSocket> try_listening(std::vector<tcp::endpoint> endpoints, error_code& error) {
    asio::io_context io;
    std::vector<ListeningSocket> sockets;
    for (auto& endpoint : endpoints) {
        if (!sockets.empty()) endpoint.port(sockets.front().port);
        auto socket = listen_tcp(io, endpoint, error);
        if (error == asio::error::address_in_use) return {};
        if (!error) sockets.push_back(std::move(socket));
    }
    return sockets;
}

/// As try_listening, but a port the kernel picked for one family may be taken in the other: then it picks again.
std::vector<ListeningSocket> listen_all(const std::vector<tcp::endpoint>& endpoints, error_code& error) {
    const int picks = endpoints.front().port() == 0 ? most_port_picks : 1;
    std::vector<ListeningSocket> sockets;
    for (int pick = 0; pick < picks && sockets.empty(); ++pick) sockets = try_listening(endpoints, error);
    return sockets;
}

[[noreturn]] void throw_not_listening(std::string_view where, std::uint16_t port, const error_code& error) {
    if (error == asio::error::address_in_use) {
        throw Error(ErrorCode::address_in_use, fmt::format("port {} is in use", port),
                    "choose another port, or 0 for any free one");
    }
    if (error == asio::error::access_denied) {
        throw Error(ErrorCode::permission, fmt::format("cannot listen on {}: {}", where, error.message()),
                    "ports below 1024 need privileges; choose a higher one, or 0 for any free one");
    }
    throw Error(ErrorCode::invalid_argument, fmt::format("cannot listen on {}: {}", where, error.message()),
                "use an address of this host");
}

}  // namespace

std::vector<ListeningSocket> listen_at(std::string_view where) {
    std::vector<ListeningSocket> sockets;
    if (where.starts_with(unix_prefix)) {
        sockets.push_back(listen_unix(where.substr(unix_prefix.size())));
        return sockets;
    }
    const auto place = parse_place(where);
    std::string unknown;
    const auto endpoints = place.host.empty() ? everywhere(place.port) : resolve(place.host, place.port, unknown);
    if (endpoints.empty()) {
        throw Error(ErrorCode::invalid_argument, fmt::format("cannot listen on {}: {}", where, unknown),
                    "use an address of this host");
    }
    error_code error;
    sockets = listen_all(endpoints, error);
    if (sockets.empty()) throw_not_listening(where, place.port, error);
    return sockets;
}

std::vector<ListeningSocket> listen_at(base::PortRange ports) {
    error_code error;
    for (unsigned number = ports.first; number <= ports.last; ++number) {
        const auto port = static_cast<std::uint16_t>(number);
        auto sockets = listen_all(everywhere(port), error);
        if (!sockets.empty()) return sockets;
        if (error != asio::error::address_in_use) throw_not_listening(std::to_string(port), port, error);
    }
    throw Error(ErrorCode::address_in_use, fmt::format("every port of {}-{} is in use", ports.first, ports.last),
                "widen tcp.ports (RAILMUX_TCP_PORTS), one port for each process of this host and one for the launcher, "
                "or end who has them");
}

}  // namespace railmux::bootstrap

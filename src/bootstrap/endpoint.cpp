#include "bootstrap/endpoint.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <cerrno>
#include <cstring>
#include <thread>

#include <railmux/error.hpp>

#include "base/values.hpp"

namespace railmux::bootstrap {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::string_view unix_prefix = "unix:";
constexpr base::Nanoseconds retry_pause = 20 * base::millisecond;

struct Place {
    std::string host;  // empty: any
    std::string port;
};

Place parse_place(std::string_view where) {
    Place place;
    const auto colon = where.rfind(':');
    if (colon == std::string_view::npos) {
        place.port = where;
    } else {
        place.host = where.substr(0, colon);
        place.port = where.substr(colon + 1);
    }
    if (place.host.size() >= 2 && place.host.front() == '[' && place.host.back() == ']') {
        place.host = place.host.substr(1, place.host.size() - 2);
    }
    const auto number = base::parse_count(place.port);
    if (!number || *number > 65535) {
        throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not PORT, HOST:PORT or [V6]:PORT", where),
                    "e.g. 5000, host-b:5000 or [fd00::2]:5000");
    }
    return place;
}

sockaddr_un unix_address(std::string_view path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        throw Error(ErrorCode::invalid_argument, fmt::format("the path {} is too long for a socket", path));
    }
    std::copy(path.begin(), path.end(), std::begin(address.sun_path));
    return address;
}

std::vector<ListeningSocket> listen_unix(std::string_view path) {
    const auto address = unix_address(path);
    base::FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid() || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(socket.get(), 1024) != 0) {
        throw Error(ErrorCode::system, fmt::format("cannot listen on {}: {}", path, std::strerror(errno)));
    }
    std::vector<ListeningSocket> sockets;
    sockets.push_back({std::move(socket), 0});
    return sockets;
}

ListeningSocket listen_tcp(asio::io_context& io, const tcp::endpoint& endpoint, error_code& error) {
    tcp::acceptor acceptor(io);
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error && endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(1024, error);
    if (!error) acceptor.non_blocking(true, error);
    if (error) return {};
    const auto port = acceptor.local_endpoint().port();
    return {base::FileDescriptor(acceptor.release()), port};
}

/// One attempt; 0 when connected, the error otherwise.
int try_connect(const sockaddr* address, socklen_t length, base::FileDescriptor& socket, base::Nanoseconds deadline) {
    socket.reset(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) return errno;
    if (::connect(socket.get(), address, length) == 0) return 0;
    if (errno != EINPROGRESS) return errno;
    pollfd wait{socket.get(), POLLOUT, 0};
    const auto left = std::max<base::Nanoseconds>((deadline - base::now_ns()) / base::millisecond, 1);
    if (::poll(&wait, 1, static_cast<int>(std::min<base::Nanoseconds>(left, 1'000'000))) <= 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

}  // namespace

std::vector<ListeningSocket> listen_at(std::string_view where) {
    if (where.starts_with(unix_prefix)) return listen_unix(where.substr(unix_prefix.size()));
    const auto place = parse_place(where);
    asio::io_context io;
    error_code error;
    std::vector<tcp::endpoint> endpoints;
    auto port = static_cast<std::uint16_t>(*base::parse_count(place.port));
    if (place.host.empty()) {
        endpoints = {{tcp::v4(), port}, {tcp::v6(), port}};
    } else {
        for (const auto& entry : tcp::resolver(io).resolve(place.host, place.port, error)) {
            endpoints.push_back(entry.endpoint());
        }
    }
    std::vector<ListeningSocket> sockets;
    for (auto endpoint : endpoints) {
        if (!sockets.empty()) endpoint.port(sockets.front().port);  // both families on one port
        auto socket = listen_tcp(io, endpoint, error);
        if (!error) sockets.push_back(std::move(socket));
        if (error == asio::error::address_in_use) break;
    }
    if (!sockets.empty() && error != asio::error::address_in_use) return sockets;
    if (error == asio::error::address_in_use) {
        throw Error(ErrorCode::address_in_use, fmt::format("port {} is in use", place.port),
                    "choose another port, or 0 for any free one");
    }
    throw Error(ErrorCode::invalid_argument, fmt::format("cannot listen on {}: {}", where, error.message()),
                "use an address of this host");
}

base::FileDescriptor connect_to(std::string_view where, base::Nanoseconds deadline) {
    base::FileDescriptor socket;
    std::string cause = "no time left";
    if (where.starts_with(unix_prefix)) {
        const auto address = unix_address(where.substr(unix_prefix.size()));
        const int error = try_connect(reinterpret_cast<const sockaddr*>(&address), sizeof address, socket, deadline);
        if (error == 0) return socket;
        throw Error(ErrorCode::unreachable, fmt::format("{}: {}", where, std::strerror(error)));
    }
    const auto place = parse_place(where);
    asio::io_context io;
    error_code resolving;
    const auto entries =
        tcp::resolver(io).resolve(place.host.empty() ? "localhost" : place.host, place.port, resolving);
    if (resolving) {
        throw Error(ErrorCode::unreachable, fmt::format("{}: {}", where, resolving.message()),
                    "check the name; an address works too");
    }
    while (base::now_ns() < deadline) {
        for (const auto& entry : entries) {
            const auto endpoint = entry.endpoint();
            const int error = try_connect(endpoint.data(), static_cast<socklen_t>(endpoint.size()), socket, deadline);
            if (error == 0) return socket;
            cause = std::strerror(error);
        }
        std::this_thread::sleep_for(std::chrono::nanoseconds(retry_pause));
    }
    throw Error(ErrorCode::unreachable, fmt::format("{} cannot be reached: {}", where, cause),
                "is the other side started with --listen, and does no firewall stand between?");
}

}  // namespace railmux::bootstrap

#include "bootstrap/endpoint.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include <railmux/error.hpp>

#include "base/values.hpp"
#include "bootstrap/resolving.hpp"

namespace railmux::bootstrap {

Place parse_place(std::string_view where) {
    const auto colon = where.rfind(':');
    Place place;
    auto port = where;
    if (colon != std::string_view::npos) {
        place.host = where.substr(0, colon);
        port = where.substr(colon + 1);
    }
    const bool bracketed = place.host.size() > 2 && place.host.front() == '[' && place.host.back() == ']';
    if (bracketed) place.host = place.host.substr(1, place.host.size() - 2);
    const auto number = base::parse_count(port);
    const bool clear = bracketed || place.host.find_first_of(":[]") == std::string::npos;  // fd00::2 has no port
    if (!number || *number > 65535 || !clear) {
        throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not PORT, HOST:PORT or [V6]:PORT", where),
                    "e.g. 5000, host-b:5000 or [fd00::2]:5000");
    }
    place.port = static_cast<std::uint16_t>(*number);
    return place;
}

sockaddr_un unix_address(std::string_view path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path) {
        throw Error(ErrorCode::invalid_argument, fmt::format("'{}' does not fit the name of a socket", path),
                    "a path of 1 to 107 bytes; TMPDIR names a shorter folder");
    }
    std::copy(path.begin(), path.end(), std::begin(address.sun_path));
    return address;
}

std::vector<boost::asio::ip::tcp::endpoint> loopback(std::uint16_t port) {
    return {{boost::asio::ip::address_v4::loopback(), port}, {boost::asio::ip::address_v6::loopback(), port}};
}

std::vector<boost::asio::ip::tcp::endpoint> resolve(const std::string& host, std::uint16_t port, std::string& error) {
    boost::asio::io_context io;
    boost::system::error_code code;
    std::vector<boost::asio::ip::tcp::endpoint> endpoints;
    for (const auto& entry : boost::asio::ip::tcp::resolver(io).resolve(host, std::to_string(port), code)) {
        const auto endpoint = entry.endpoint();  // a hosts file may name one twice
        if (std::find(endpoints.begin(), endpoints.end(), endpoint) == endpoints.end()) endpoints.push_back(endpoint);
    }
    if (endpoints.empty() && host == "localhost") return loopback(port);  // RFC 6761: the name means nothing else
    if (endpoints.empty()) error = code ? code.message() : "no address";
    return endpoints;
}

std::string describe(const sockaddr& address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (address.sa_family == AF_INET) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
        ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
        return fmt::format("{}:{}", text.data(), ntohs(v4.sin_port));
    }
    if (address.sa_family == AF_INET6) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
        ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
        return fmt::format("[{}]:{}", text.data(), ntohs(v6.sin6_port));
    }
    return "unix";
}

std::vector<std::string> own_addresses() {
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return {};
    const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
    std::vector<std::string> v4;
    std::vector<std::string> v6;
    std::array<char, INET6_ADDRSTRLEN> text{};
    for (const auto* entry = first; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 || (entry->ifa_flags & IFF_LOOPBACK) != 0) {
            continue;
        }
        if (entry->ifa_addr->sa_family == AF_INET) {
            const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
            v4.emplace_back(::inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()));
        } else if (entry->ifa_addr->sa_family == AF_INET6) {
            const auto* address = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
            if (IN6_IS_ADDR_LINKLOCAL(&address->sin6_addr)) continue;
            v6.push_back(fmt::format("[{}]", ::inet_ntop(AF_INET6, &address->sin6_addr, text.data(), text.size())));
        }
    }
    v4.insert(v4.end(), v6.begin(), v6.end());
    return v4;
}

}  // namespace railmux::bootstrap

// What listening and connecting share: names to addresses.
//
// Threads: pure functions; resolve may block on the network.
// Lifetime: none.
#pragma once

#include <sys/un.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railmux::bootstrap {

/// In front of the path of a Unix socket.
inline constexpr std::string_view unix_prefix = "unix:";

/// Throws Error(invalid_argument) when the path does not fit.
[[nodiscard]] sockaddr_un unix_address(std::string_view path);

/// This host, by both families: needs no resolver, which may know no "localhost" (a container without /etc/hosts).
[[nodiscard]] std::vector<boost::asio::ip::tcp::endpoint> loopback(std::uint16_t port);

/// All addresses of a host; with none, `error` says why.
[[nodiscard]] std::vector<boost::asio::ip::tcp::endpoint> resolve(const std::string& host, std::uint16_t port,
                                                                  std::string& error);

}  // namespace railmux::bootstrap

// Sockets of the tcp transport are what the parameters say.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "transports/tcp/sockets.hpp"

#include <railmux/error.hpp>

using namespace railmux;
using namespace railmux::transports;

namespace {

std::string congestion_of(int socket) {
    std::array<char, 64> name{};
    socklen_t length = name.size() - 1;
    REQUIRE(::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) == 0);
    return name.data();
}

tcp::Endpoint loopback() {
    tcp::Endpoint endpoint;
    endpoint.at.family = AF_INET;
    const std::array<unsigned char, 4> bytes{127, 0, 0, 1};
    std::memcpy(&endpoint.at.bytes, bytes.data(), bytes.size());
    return endpoint;
}

/// A connection over the loopback: who began it, and who accepted.
std::pair<base::FileDescriptor, base::FileDescriptor> connected(const tcp::SocketOptions& options) {
    const auto listener = tcp::listen_on(loopback(), options);
    auto there = tcp::start_connect(loopback(), listener.endpoint, options);
    REQUIRE(there.ok());
    tcp::Endpoint from;
    pollfd knock{listener.socket.get(), POLLIN, 0};
    REQUIRE(::poll(&knock, 1, 10'000) == 1);
    auto here = tcp::accept_next(listener.socket.get(), options, from);
    REQUIRE(here.valid());
    return {std::move(there.value()), std::move(here)};
}

}  // namespace

TEST_CASE("both ends of a tcp link have the congestion control that the parameters name", "[transports][tcp]") {
    Config config;
    config.set("tcp.congestion", "reno");  // no kernel is without it
    const auto [there, here] = connected(tcp::SocketOptions::read(config));
    CHECK(congestion_of(there.get()) == "reno");
    CHECK(congestion_of(here.get()) == "reno");
}

TEST_CASE("a congestion control that the kernel does not have is refused by name", "[transports][tcp]") {
    Config config;
    config.set("tcp.congestion", "nosuch");
    CHECK_THROWS_WITH(tcp::SocketOptions::read(config), Catch::Contains("'nosuch'"));
}

TEST_CASE("what is acknowledged early can be read, but is not told of before that ends", "[transports][tcp]") {
    const auto [there, here] = connected(tcp::SocketOptions::read(Config{}));
    const auto send_byte = [sender = there.get()] { return ::send(sender, "x", 1, MSG_NOSIGNAL); };
    pollfd entry{here.get(), POLLIN, 0};
    std::array<char, 8> place{};

    tcp::acknowledge_early(here.get(), tcp::EarlyAcks::Of::short_messages);
    REQUIRE(send_byte() == 1);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (::recv(here.get(), place.data(), place.size(), MSG_DONTWAIT | MSG_PEEK) != 1) {
        REQUIRE(std::chrono::steady_clock::now() < limit);
    }
    CHECK(::poll(&entry, 1, 0) == 0);
    CHECK(::recv(here.get(), place.data(), place.size(), MSG_DONTWAIT) == 1);
    REQUIRE(send_byte() == 1);
    tcp::acknowledge_early(here.get(), tcp::EarlyAcks::Of::none);
    CHECK(::poll(&entry, 1, 10'000) == 1);
}

TEST_CASE("what is acknowledged early is below the mark for it", "[transports][tcp]") {
    const base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto mark = [&](tcp::EarlyAcks::Of which) {
        tcp::acknowledge_early(socket.get(), which);
        int value = 0;
        socklen_t length = sizeof value;
        REQUIRE(::getsockopt(socket.get(), SOL_SOCKET, SO_RCVLOWAT, &value, &length) == 0);
        return value;
    };
    CHECK(mark(tcp::EarlyAcks::Of::short_messages) == tcp::EarlyAcks::longest_short);
    CHECK(mark(tcp::EarlyAcks::Of::long_messages) == tcp::EarlyAcks::longest);
    CHECK(mark(tcp::EarlyAcks::Of::none) == 1);
}

TEST_CASE("a portion for a slow network is a few packets, or one that is large", "[transports][tcp]") {
    const auto portion = [](int packet) {
        const base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        REQUIRE(::setsockopt(socket.get(), IPPROTO_TCP, TCP_MAXSEG, &packet, sizeof packet) == 0);
        return tcp::portion_of(socket.get());
    };
    CHECK(portion(1448) == 8 * 1448);
    CHECK(portion(1460) == 8 * 1460);
    CHECK(portion(8948) == 8948);
    CHECK(portion(536) == 22 * 536);
}

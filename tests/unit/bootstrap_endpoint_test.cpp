// Where to listen and whom to reach.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <thread>

#include <railmux/error.hpp>

#include "bootstrap/endpoint.hpp"

using namespace railmux;
using namespace railmux::bootstrap;

namespace {

template <typename Call>
Error error_of(Call call) {
    try {
        call();
    } catch (const Error& error) {
        return error;
    }
    return Error(ErrorCode::ok, "no error");
}

base::Nanoseconds in(base::Nanoseconds time) { return base::now_ns() + time; }

}  // namespace

TEST_CASE("endpoint: places that are understood", "[endpoint]") {
    const auto [text, host, port] =
        GENERATE(table<std::string, std::string, int>({{"5000", "", 5000},
                                                       {"0", "", 0},
                                                       {":65535", "", 65535},
                                                       {"host-b:5000", "host-b", 5000},
                                                       {"10.0.0.1:1", "10.0.0.1", 1},
                                                       {"[fd00::2]:5000", "fd00::2", 5000},
                                                       {"[fe80::1%eth0]:9", "fe80::1%eth0", 9}}));
    const auto place = parse_place(text);
    CHECK(place.host == host);
    CHECK(place.port == port);
}

TEST_CASE("endpoint: places that are not", "[endpoint]") {
    const std::string text = GENERATE("", "host", "host:", "host:x", "host:65536", "host:-1", "fd00::2", "fd00::2:5000",
                                      "[fd00::2]", "[fd00::2:5000", "[]:1", "host:1:2", "host: 1x");
    const auto error = error_of([&] { (void)parse_place(text); });
    CHECK(error.code() == ErrorCode::invalid_argument);
    CHECK_THAT(error.what(), Catch::Contains("'" + text + "'"));
    CHECK_THAT(error.cure(), Catch::Contains("host-b:5000"));
}

TEST_CASE("endpoint: without a host both families listen on one port", "[endpoint]") {
    const auto sockets = listen_at("0");
    REQUIRE_FALSE(sockets.empty());
    for (const auto& socket : sockets) CHECK(socket.port == sockets.front().port);
    CHECK(sockets.front().port != 0);
    CHECK(connect_to("127.0.0.1:" + std::to_string(sockets.front().port), in(base::second)).valid());
    if (sockets.size() == 2) {
        CHECK(connect_to("[::1]:" + std::to_string(sockets.front().port), in(base::second)).valid());
    }
}

TEST_CASE("endpoint: this host is reached without a name, and as localhost", "[endpoint]") {
    const auto sockets = listen_at("127.0.0.1:0");
    const auto port = std::to_string(sockets.front().port);
    for (const auto& where : {port, "localhost:" + port}) CHECK(connect_to(where, in(base::second)).valid());
}

TEST_CASE("endpoint: a port in use is named, with the cure", "[endpoint]") {
    const auto sockets = listen_at("0");
    const auto port = std::to_string(sockets.front().port);
    for (const auto& where : {port, "127.0.0.1:" + port}) {
        const auto error = error_of([&] { (void)listen_at(where); });
        CHECK(error.code() == ErrorCode::address_in_use);
        CHECK_THAT(error.what(), Catch::Contains("port " + port));
        CHECK_THAT(error.cure(), Catch::Contains("0 for any free one"));
    }
}

TEST_CASE("endpoint: of a range of ports the first free one, on every address", "[endpoint]") {
    const auto taken = listen_at("0");
    const auto first = taken.front().port;
    const auto sockets = listen_at(base::PortRange{first, static_cast<std::uint16_t>(first + 100)});
    const auto port = sockets.front().port;
    CHECK((port > first && port <= first + 100));
    for (const auto& socket : sockets) CHECK(socket.port == port);
    CHECK(sockets.size() == taken.size());
    CHECK(connect_to("127.0.0.1:" + std::to_string(port), in(base::second)).valid());
    CHECK(listen_at(base::PortRange{}).front().port != 0);
}

TEST_CASE("endpoint: a range of ports in use is named, with the cure", "[endpoint]") {
    const auto taken = listen_at("127.0.0.1:0");  // one of the addresses is enough
    const auto port = taken.front().port;
    const auto error = error_of([&] { (void)listen_at(base::PortRange{port, port}); });
    CHECK(error.code() == ErrorCode::address_in_use);
    CHECK_THAT(error.what(), Catch::Contains(fmt::format("every port of {0}-{0} is in use", port)));
    CHECK_THAT(error.cure(), Catch::Contains("RAILMUX_TCP_PORTS"));
}

TEST_CASE("endpoint: an address of another host cannot be listened on", "[endpoint]") {
    CHECK(error_of([] { (void)listen_at("192.0.2.77:0"); }).code() == ErrorCode::invalid_argument);
    CHECK(error_of([] { (void)listen_at("unix:"); }).code() == ErrorCode::invalid_argument);
    CHECK(error_of([] { (void)listen_at("unix:/" + std::string(200, 'x')); }).code() == ErrorCode::invalid_argument);
}

TEST_CASE("endpoint: nobody there: the place and the cause are named, within the time", "[endpoint]") {
    std::string port;
    { port = std::to_string(listen_at("127.0.0.1:0").front().port); }
    const auto start = base::now_ns();
    const auto error = error_of([&] { (void)connect_to("127.0.0.1:" + port, in(base::second / 5)); });
    CHECK(error.code() == ErrorCode::unreachable);
    CHECK_THAT(error.what(), Catch::Contains("127.0.0.1:" + port) && Catch::Contains("refused"));
    CHECK_FALSE(error.cure().empty());
    CHECK(base::now_ns() - start < 5 * base::second);
    CHECK(error_of([&] { (void)connect_to("unix:/no/such/socket", in(base::second)); }).code() ==
          ErrorCode::unreachable);
}

TEST_CASE("endpoint: an unknown host is named", "[endpoint]") {
    const auto error = error_of([] { (void)connect_to("no-such-host.invalid:5000", in(base::second)); });
    CHECK(error.code() == ErrorCode::unreachable);
    CHECK_THAT(error.what(), Catch::Contains("no-such-host.invalid:5000"));
}

TEST_CASE("endpoint: the two sides may start in any order", "[endpoint]") {
    std::string port;
    { port = std::to_string(listen_at("127.0.0.1:0").front().port); }
    base::FileDescriptor connected;
    std::thread client([&] { connected = connect_to("127.0.0.1:" + port, in(20 * base::second)); });
    const auto sockets = listen_at("127.0.0.1:" + port);
    client.join();
    CHECK(connected.valid());
}

TEST_CASE("endpoint: a Unix socket", "[endpoint]") {
    auto folder = (std::filesystem::temp_directory_path() / "railmux-test-XXXXXX").string();
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    {
        const auto sockets = listen_at("unix:" + folder + "/socket");
        CHECK(connect_to("unix:" + folder + "/socket", in(base::second)).valid());
    }
    std::filesystem::remove_all(folder);
}

TEST_CASE("endpoint: addresses as people read them", "[endpoint]") {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(5000);
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(describe(reinterpret_cast<const sockaddr&>(v4)) == "127.0.0.1:5000");
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(5000);
    v6.sin6_addr = in6addr_loopback;
    CHECK(describe(reinterpret_cast<const sockaddr&>(v6)) == "[::1]:5000");
    for (const auto& address : own_addresses()) CHECK(address != "127.0.0.1");
}

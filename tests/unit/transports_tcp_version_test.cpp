// A tcp rail against connections of another railmux release, written by hand.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/host.hpp"
#include "transports/tcp/address.hpp"
#include "transports/tcp/transport.hpp"
#include "transports/tcp/wire.hpp"

using namespace railmux;
using namespace railmux::transports;

namespace {

constexpr std::uint16_t other_release = tcp::stream_version + 1;

/// A rail on the loopback interface.
class Loopback {
public:
    Loopback() {
        config_.set("tcp.interfaces", "lo");
        transport_ = tcp::make_transport({config_, log_});
        const auto devices = transport_->scan();
        const auto found = std::ranges::find(devices, "lo", &RailInfo::device);
        REQUIRE(found != devices.end());
        rail_ = transport_->open(*found);
    }
    Rail& operator*() { return *rail_; }
    Rail* operator->() { return rail_.get(); }

private:
    Config config_;
    base::Logger log_{base::LogLevel::off};
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<Rail> rail_;
};

/// A socket that listens where a peer's rail would.
class Door {
public:
    Door() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in name{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {::htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
        socklen_t size = sizeof name;
        REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&name), size) == 0);
        REQUIRE(::listen(socket_.get(), 1) == 0);
        REQUIRE(::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
        tcp::Endpoint endpoint{{.prefix = 8}, ::ntohs(name.sin_port)};
        std::memcpy(&endpoint.at.bytes, &name.sin_addr, sizeof name.sin_addr);
        address_ = tcp::RailAddress{.host = base::host_identity(), .loopback = true, .endpoints = {endpoint}}.encode();
    }
    [[nodiscard]] const std::vector<std::byte>& address() const { return address_; }
    [[nodiscard]] base::FileDescriptor let_in() {
        return base::FileDescriptor(::accept(socket_.get(), nullptr, nullptr));
    }

private:
    base::FileDescriptor socket_;
    std::vector<std::byte> address_;
};

struct End {
    ErrorCode code = ErrorCode::ok;
    std::string cause;
    bool up = false;
};

/// Polls until the link is down; what was said of it.
End end_of(Rail& rail, LinkId link) {
    End end;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (end.cause.empty()) {
        REQUIRE(std::chrono::steady_clock::now() < limit);
        std::array<Event, 4> events;
        const auto count = rail.poll(events);
        for (const auto& event : std::span(events).first(count)) {
            if (event.link != link) continue;
            end.up = end.up || event.kind == EventKind::link_up;
            if (event.kind == EventKind::link_down) end = {event.code, std::string(event.text), end.up};
        }
    }
    return end;
}

void answer(const base::FileDescriptor& socket, const tcp::Greeting& greeting) {
    const auto bytes = encode(greeting);
    REQUIRE(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

}  // namespace

TEST_CASE("tcp: a peer with another version of the stream is told apart from one that cannot be reached", "[tcp]") {
    Loopback rail;
    Door door;
    const auto link = rail->connect(door.address(), {});
    const auto peer = door.let_in();
    SECTION("it refuses in its own words") {
        answer(peer, {.version = other_release, .kind = tcp::GreetingKind::refusal});
        const auto end = end_of(*rail, link);
        CHECK(end.code == ErrorCode::wrong_version);
        CHECK(end.cause == "it speaks version " + std::to_string(other_release) +
                               " of the railmux stream, this is version " + std::to_string(tcp::stream_version) +
                               "; use one release of railmux on both sides");
        CHECK_FALSE(end.up);
    }
    SECTION("it refuses in ours, without saying why") {
        answer(peer, {.kind = tcp::GreetingKind::refusal});
        CHECK(end_of(*rail, link).code == ErrorCode::unreachable);
    }
    SECTION("it says nothing that could be understood") {
        REQUIRE(::send(peer.get(), "SSH-2.0-OpenSSH_9.2\r\n", 21, MSG_NOSIGNAL) == 21);
        const auto end = end_of(*rail, link);
        CHECK(end.code == ErrorCode::unreachable);
        CHECK(end.cause == "it does not speak railmux");
    }
}

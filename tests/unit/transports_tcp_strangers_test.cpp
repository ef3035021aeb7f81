// A tcp rail besieged by strangers: who only connects, dribbles, sends garbage or floods neither stays nor keeps others out.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/file_descriptor.hpp"
#include "transports/tcp/address.hpp"
#include "transports/tcp/transport.hpp"
#include "transports/tcp/wire.hpp"

using namespace railmux;
using namespace railmux::transports;
using Clock = std::chrono::steady_clock;

namespace {

class Besieged {
public:
    Besieged() {
        config_.set("tcp.interfaces", "lo").set("tcp.families", "ipv4");
        transport_ = tcp::make_transport({config_, log_});
        const auto devices = transport_->scan();
        const auto found = std::ranges::find(devices, "lo", &RailInfo::device);
        REQUIRE(found != devices.end());
        rail = transport_->open(*found);
        port_ = tcp::RailAddress::parse(rail->address())->endpoints.front().port;
    }

    [[nodiscard]] base::FileDescriptor stranger() const {
        base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        connect(socket);
        return socket;
    }
    void connect(const base::FileDescriptor& socket) const {
        const sockaddr_in name{
            .sin_family = AF_INET, .sin_port = ::htons(port_), .sin_addr = {::htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
        REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    }

    /// Looks at the rail, accepts every request, until it holds.
    void until(const std::function<bool()>& holds) {
        const auto limit = Clock::now() + std::chrono::seconds(30);
        while (!holds()) {
            REQUIRE(Clock::now() < limit);
            look();
        }
    }
    void look() {
        std::array<Event, 16> events;
        const auto count = rail->poll(events);
        for (const auto& event : std::span(events).first(count)) {
            if (event.kind == EventKind::connect_request) {
                requests.emplace_back(event.data.begin(), event.data.end());
                rail->accept(event.link, {});
            } else if (event.kind == EventKind::link_down) {
                ++down;
            } else if (event.kind == EventKind::received) {
                ++received;
            }
        }
    }

    std::unique_ptr<Rail> rail;
    std::vector<std::vector<std::byte>> requests;
    int down = 0;
    int received = 0;

private:
    Config config_;
    base::Logger log_{base::LogLevel::off};
    std::unique_ptr<Transport> transport_;
    std::uint16_t port_ = 0;
};

void say(const base::FileDescriptor& socket, std::span<const std::byte> bytes) {
    REQUIRE(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

std::vector<std::byte> greeting_of(std::span<const std::byte> hello) {
    const auto head = encode(tcp::Greeting{.length = static_cast<std::uint16_t>(hello.size())});
    std::vector<std::byte> bytes(head.size() + hello.size());
    std::ranges::copy(hello, std::ranges::copy(head, bytes.begin()).out);
    return bytes;
}

/// Whether the other side has closed it.
bool closed(const base::FileDescriptor& socket) {
    std::array<std::byte, 512> bytes;
    const auto got = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
}

const std::vector<std::byte> hello(56, std::byte{7});

}  // namespace

TEST_CASE("tcp: who has something to say gets in past any number of strangers that say nothing", "[tcp][strangers]") {
    Besieged t;
    std::vector<base::FileDescriptor> silent;
    for (int i = 0; i < 600; ++i) {  // many more than may wait, and fewer than the kernel queues
        silent.push_back(t.stranger());
        t.look();
    }
    const auto guest = t.stranger();
    say(guest, greeting_of(hello));
    t.until([&] { return !t.requests.empty(); });
    REQUIRE(t.requests.size() == 1);
    CHECK(t.requests.front() == hello);
    t.until([&] { return closed(silent.front()); });  // made room, long before its time was over
    CHECK_FALSE(closed(silent.back()));
    CHECK(t.down == 0);  // nobody above has heard of them
}

TEST_CASE("tcp: a hello that comes byte by byte has no more time than another one, while the rail sleeps, too",
          "[tcp][strangers]") {
    Besieged t;
    const auto slow = t.stranger();
    const auto bytes = greeting_of(hello);
    const auto begun = Clock::now();
    std::size_t said = 0;
    while (!closed(slow)) {
        REQUIRE(Clock::now() - begun < std::chrono::seconds(30));
        if (said + 1 < bytes.size() && Clock::now() - begun > said * std::chrono::milliseconds(50)) {
            ::send(slow.get(), &bytes[said++], 1, MSG_NOSIGNAL);
        }
        t.look();
        pollfd sleeper{t.rail->arm(), POLLIN, 0};
        if (sleeper.fd >= 0) ::poll(&sleeper, 1, 20);
    }
    CHECK(t.requests.empty());
}

TEST_CASE("tcp: the rail wakes up to see a stranger's time end", "[tcp][strangers]") {
    Besieged t;
    const auto silent = t.stranger();
    t.until([&] { return t.rail->arm() >= 0; });
    for (int i = 0; i < 200; ++i) t.look();  // it is in
    const auto begun = Clock::now();
    while (!closed(silent)) {
        REQUIRE(Clock::now() - begun < std::chrono::seconds(30));
        pollfd sleeper{t.rail->arm(), POLLIN, 0};
        if (sleeper.fd >= 0) REQUIRE(::poll(&sleeper, 1, 10'000) == 1);  // nothing else wakes it
        t.look();
    }
}

TEST_CASE("tcp: garbage ends its own connection at once", "[tcp][strangers]") {
    Besieged t;
    const auto guest = t.stranger();
    say(guest, std::as_bytes(std::span("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
    t.until([&] { return closed(guest); });
    CHECK(t.requests.empty());
    CHECK(t.down == 0);
}

TEST_CASE("tcp: connections that there are no descriptors for are closed, and keep nobody awake", "[tcp][strangers]") {
    Besieged t;
    std::vector<base::FileDescriptor> sockets;
    for (int i = 0; i < 5; ++i) sockets.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto guest_socket = base::FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const base::FileDescriptor next(::dup(guest_socket.get()));  // the lowest that is free
    const rlimit none{static_cast<rlim_t>(next.get()), limit.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    for (const auto& socket : sockets) t.connect(socket);
    t.until([&] { return std::ranges::all_of(sockets, closed); });
    bool sleeps = false;
    t.until([&] {
        pollfd sleeper{t.rail->arm(), POLLIN, 0};
        sleeps = sleeper.fd >= 0 && ::poll(&sleeper, 1, 10) == 0;
        return sleeps;
    });
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    t.connect(guest_socket);
    say(guest_socket, greeting_of(hello));
    t.until([&] { return !t.requests.empty(); });
}

TEST_CASE("tcp: who waits for a process that did not look for longer than his time is not closed for that",
          "[tcp][strangers]") {
    Besieged t;
    const auto guest = t.stranger();
    for (int i = 0; i < 200; ++i) t.look();
    const auto bytes = greeting_of(hello);
    say(guest, std::span(bytes).first(10));  // it waits for an answer in between, as TLS does
    for (int i = 0; i < 200; ++i) t.look();
    int descriptor = -1;
    t.until([&] { return (descriptor = t.rail->arm()) >= 0; });
    pollfd clock{descriptor, POLLIN, 0};
    REQUIRE(::poll(&clock, 1, 10'000) == 1);  // his time is over: nothing else wakes it
    for (int i = 0; i < 200; ++i) t.look();
    say(guest, std::span(bytes).subspan(10));
    t.until([&] { return !t.requests.empty() || closed(guest); });
    CHECK(t.requests.size() == 1);
}

// Tcp rails on the loopback interface, and somebody on the path between them.
//
// Threads: one.
// Lifetime: a Host outlives what is connected to it.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tcp_wire.hpp"
#include "transports/tcp/address.hpp"
#include "transports/tcp/transport.hpp"

namespace railmux::test {

using namespace transports;  // NOLINT: the tests are about them

/// The transport of one process with its rail on the loopback interface, and what came of it.
class Host {
public:
    /// An empty key: no encryption.
    explicit Host(const std::string& key) {
        config_.set("tcp.interfaces", "lo").set("tcp.families", "ipv4");
        if (!key.empty()) config_.set("tcp.encryption", "on").set("job.key", key);
        transport_ = tcp::make_transport({config_, log_});
        const auto devices = transport_->scan();
        const auto found = std::ranges::find(devices, "lo", &RailInfo::device);
        REQUIRE(found != devices.end());
        rail = transport_->open(*found);
    }

    [[nodiscard]] tcp::Endpoint endpoint() const { return tcp::RailAddress::parse(rail->address())->endpoints.front(); }

    void look() {
        std::array<Event, 16> events;
        const auto count = rail->poll(events);
        for (const auto& event : std::span(events).first(count)) take(event);
    }

    void send(std::span<const std::byte> bytes) {
        Segment segment{const_cast<std::byte*>(bytes.data()), bytes.size()};
        const Work work{.op = Op::send, .link = link, .segments = {&segment, 1}};
        while (rail->post({&work, 1}) == 0) look();
    }

    static inline const std::vector<std::byte> hello = std::vector<std::byte>(56, std::byte{7});
    std::unique_ptr<Rail> rail;
    LinkId link;
    int requests = 0;
    bool up = false;
    bool down = false;
    ErrorCode code = ErrorCode::ok;
    std::string cause;
    std::vector<std::byte> received;

private:
    void take(const Event& event) {
        switch (event.kind) {
            case EventKind::connect_request:
                ++requests;
                link = event.link;
                rail->accept(event.link, {});
                break;
            case EventKind::link_up: up = true; break;
            case EventKind::link_down:
                down = true;
                code = event.code;
                cause = event.text;
                break;
            case EventKind::received: received.insert(received.end(), event.data.begin(), event.data.end()); break;
            default: break;
        }
    }

    Config config_;
    base::Logger log_;
    std::unique_ptr<Transport> transport_;
};

inline void until(const std::function<void()>& step, const std::function<bool()>& holds) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!holds()) {
        REQUIRE(std::chrono::steady_clock::now() < limit);
        step();
    }
}

/// Two hosts with the same key, one connected to the other over a wire.
struct Tapped {
    explicit Tapped(const std::string& key) : a(key), b(key), wire(b.endpoint()) {
        a.link = a.rail->connect(wire.instead_of(b.rail->address()), Host::hello);
        run([&] { return a.up && b.up; });
    }
    void run(const std::function<bool()>& holds) {
        until(
            [&] {
                a.look();
                wire.pump();
                b.look();
            },
            holds);
    }
    Host a;
    Host b;
    Wire wire;
};

}  // namespace railmux::test

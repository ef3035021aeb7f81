// Wire: somebody on the path between tcp rails: a port that passes on what comes, both ways, and sees it, keeps it and may
// change it.
//
// Threads: one.
// Lifetime: ends its connections when it ends.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>
#include <catch2/catch.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <list>
#include <span>
#include <vector>

#include "base/file_descriptor.hpp"
#include "transports/tcp/address.hpp"

namespace railmux::test {

inline sockaddr_in loopback_name(std::uint16_t port, std::uint32_t host = INADDR_LOOPBACK) {
    return {.sin_family = AF_INET, .sin_port = ::htons(port), .sin_addr = {::htonl(host)}, .sin_zero = {}};
}

/// A socket connected to that endpoint (IPv4).
inline base::FileDescriptor connected_to(const transports::tcp::Endpoint& to) {
    base::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto name = loopback_name(to.port);
    std::memcpy(&name.sin_addr, &to.at.bytes, sizeof name.sin_addr);
    REQUIRE(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    return socket;
}

class Wire {
public:
    /// One direction of one connection.
    struct Flow {
        int from = -1;
        int to = -1;
        std::vector<std::byte> seen{};  // as it came
        std::vector<std::byte> waiting{};
        bool over = false;
    };
    struct Connection {
        base::FileDescriptor near;
        base::FileDescriptor far;
        Flow there{};
        Flow back{};
    };

    /// Stands before `to`, an IPv4 endpoint of a rail.
    explicit Wire(const transports::tcp::Endpoint& to) : to_(to) {
        auto name = loopback_name(0);
        std::memcpy(&name.sin_addr, &to.at.bytes, sizeof name.sin_addr);
        socklen_t size = sizeof name;
        REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&name), size) == 0);
        REQUIRE(::listen(listener_.get(), 16) == 0);
        REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
        port_ = ::ntohs(name.sin_port);
    }

    /// The address of the rail it stands before, as it would be with this wire in its place.
    [[nodiscard]] std::vector<std::byte> instead_of(std::span<const std::byte> address) const {
        auto rail = *transports::tcp::RailAddress::parse(address);
        for (auto& endpoint : rail.endpoints) {
            if (endpoint.port == to_.port) endpoint.port = port_;
        }
        return rail.encode();
    }

    /// Passes on what there is.
    void pump() {
        base::FileDescriptor near(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (near.valid()) {
            auto& made = connections.emplace_back(std::move(near), connected_to(to_));
            made.there.from = made.back.to = made.near.get();
            made.there.to = made.back.from = made.far.get();
        }
        for (auto& connection : connections) {
            pass(connection.there);
            pass(connection.back);
        }
    }

    std::list<Connection> connections;
    /// Called with what is about to be passed on.
    std::function<void(Flow&, std::span<std::byte>)> change = [](Flow&, std::span<std::byte>) {};

private:
    void pass(Flow& flow) const {
        std::array<std::byte, 16 * 1024> bytes;
        if (flow.over) return;
        if (flow.waiting.empty()) {
            const auto got = ::recv(flow.from, bytes.data(), bytes.size(), MSG_DONTWAIT);
            if (got < 0 && errno == EAGAIN) return;
            if (got <= 0) {
                flow.over = true;
                ::shutdown(flow.to, SHUT_WR);
                return;
            }
            flow.waiting.assign(bytes.begin(), bytes.begin() + got);
            flow.seen.insert(flow.seen.end(), flow.waiting.begin(), flow.waiting.end());
            change(flow, flow.waiting);
        }
        const auto sent = ::send(flow.to, flow.waiting.data(), flow.waiting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) flow.waiting.erase(flow.waiting.begin(), flow.waiting.begin() + sent);
        if (sent < 0 && errno != EAGAIN) flow.waiting.clear();  // nobody wants it any more
    }

    transports::tcp::Endpoint to_;
    base::FileDescriptor listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    std::uint16_t port_ = 0;
};

}  // namespace railmux::test

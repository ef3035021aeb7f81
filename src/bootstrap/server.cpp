#include "bootstrap/server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace railmux::bootstrap {

void Connection::pump() {
    auto& out = channel.output();
    while (!out.empty()) {
        const auto sent = ::send(socket.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent <= 0) {
            lost = lost || (errno != EAGAIN && errno != EINTR);
            break;
        }
        out.erase(out.begin(), out.begin() + sent);
    }
    std::array<std::byte, 16 * 1024> buffer;
    while (!lost) {
        const auto got = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            lost = got == 0 || errno != EAGAIN;
            break;
        }
        channel.receive(std::span(buffer).first(static_cast<std::size_t>(got)));
        if (!out.empty()) {
            const auto sent = ::send(socket.get(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent > 0) out.erase(out.begin(), out.begin() + sent);
        }
    }
}

std::uint16_t Server::listen(std::string_view where) {
    auto sockets = listen_at(where);
    const auto port = sockets.front().port;
    for (auto& socket : sockets) listeners_.push_back(std::move(socket));
    return port;
}

void Server::accept_from(int listener) {
    while (true) {
        const int accepted = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (accepted < 0) return;
        base::FileDescriptor socket(accepted);
        const auto strangers = std::count_if(connections_.begin(), connections_.end(), [](const Connection& c) {
            return c.channel.state() == Channel::State::greeting;
        });
        if (static_cast<std::size_t>(strangers) >= most_strangers) {
            log_.warning("start-up: a connection closed: {} others have not finished their greeting", strangers);
            continue;
        }
        connections_.push_back({.socket = std::move(socket),
                                .channel = Channel(Channel::Role::server, key_),
                                .since = base::now_ns(),
                                .number = next_number_++});
    }
}

bool Server::finished(Connection& connection) {
    if (connection.channel.state() == Channel::State::failed) {
        log_.warning("start-up: a connection closed: {}", connection.channel.failure_text());
        return true;
    }
    if (connection.lost) return true;
    if (connection.channel.state() == Channel::State::greeting && base::now_ns() - connection.since > stranger_limit) {
        log_.warning("start-up: a connection closed: it did not finish its greeting within 2 s");
        return true;
    }
    return false;
}

void Server::poll(const OnMessage& on_message, const OnLost& on_lost) {
    for (const auto& listener : listeners_) accept_from(listener.socket.get());
    for (auto connection = connections_.begin(); connection != connections_.end();) {
        connection->pump();
        while (!connection->channel.inbox().empty()) {
            const auto message = std::move(connection->channel.inbox().front());
            connection->channel.inbox().pop_front();
            on_message(*connection, message);
        }
        connection->pump();
        if (finished(*connection)) {
            if (on_lost) on_lost(*connection);
            connection = connections_.erase(connection);
        } else {
            ++connection;
        }
    }
}

Connection* Server::find(std::uint64_t number) noexcept {
    for (auto& connection : connections_) {
        if (connection.number == number) return &connection;
    }
    return nullptr;
}

std::vector<int> Server::descriptors() const {
    std::vector<int> all;
    for (const auto& listener : listeners_) all.push_back(listener.socket.get());
    for (const auto& connection : connections_) all.push_back(connection.socket.get());
    return all;
}

}  // namespace railmux::bootstrap

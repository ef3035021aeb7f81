// Server: the listening side of channels: accepts, runs their handshakes, and hands out what their clients say.
//
// Threads: one thread at a time per object.
// Lifetime: owns its sockets; refers to its log.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "bootstrap/channel.hpp"
#include "bootstrap/endpoint.hpp"

namespace railmux::bootstrap {

/// A channel over a socket.
struct Connection {
    base::FileDescriptor socket;
    Channel channel;
    base::Nanoseconds since = 0;
    bool lost = false;  // the other side closed, or the socket failed
    std::uint64_t number = 0;

    /// Reads and writes what can be read and written now.
    void pump();
};

class Server {
public:
    Server(std::string key, base::Logger& log) : key_(std::move(key)), log_(log) {}

    /// Listens at one more place; returns the port. Throws as listen_at.
    std::uint16_t listen(std::string_view where);
    [[nodiscard]] bool listening() const noexcept { return !listeners_.empty(); }

    using OnMessage = std::function<void(Connection&, const Message&)>;
    using OnLost = std::function<void(Connection&)>;
    /// Moves everything on that can be; never blocks.
    void poll(const OnMessage& on_message, const OnLost& on_lost = {});

    /// The open connection with that number; nullptr when it is gone.
    [[nodiscard]] Connection* find(std::uint64_t number) noexcept;
    /// All descriptors to wait on for input.
    [[nodiscard]] std::vector<int> descriptors() const;

private:
    static constexpr std::size_t most_strangers = 64;
    static constexpr base::Nanoseconds stranger_limit = 2 * base::second;

    void accept_from(int listener);
    [[nodiscard]] bool finished(Connection& connection);

    std::string key_;
    base::Logger& log_;
    std::vector<ListeningSocket> listeners_;
    std::list<Connection> connections_;
    std::uint64_t next_number_ = 1;
};

}  // namespace railmux::bootstrap

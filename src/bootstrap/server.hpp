// Server: the listening side of channels: accepts, runs their handshakes, and hands out what their clients say.
//
// A stranger (a connection that has not proved the key yet) may send anything: whatever breaks the protocol closes that
// connection with a log line and nothing else. There are at most 64 strangers, each for at most 2 s in which the
// process looks; when more knock,
// the oldest that has had its fair time makes room, and the others wait in the kernel's queue.
//
// Threads: one thread at a time per object.
// Lifetime: owns its sockets; refers to its log.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/log_limit.hpp"
#include "base/looked_time.hpp"
#include "bootstrap/connection.hpp"
#include "bootstrap/endpoint.hpp"

namespace railmux::bootstrap {

class Server {
public:
    /// Throws Error(system) when the kernel gives no descriptor.
    Server(std::string key, base::Logger& log, base::Clock clock = base::now_ns);

    /// Listens at one more place; returns the port. Throws as listen_at.
    std::uint16_t listen(std::string_view where) { return add(listen_at(where)); }
    std::uint16_t listen(base::PortRange ports) { return add(listen_at(ports)); }
    [[nodiscard]] bool listening() const noexcept { return !listeners_.empty(); }

    using OnMessage = std::function<void(Connection&, const Message&)>;
    using OnLost = std::function<void(Connection&)>;
    /// Moves everything on that can be; never blocks. One system call when there is nothing.
    void poll(const OnMessage& on_message, const OnLost& on_lost = {});

    /// Sends to the connection with that number, from inside poll's callbacks or outside. False when it is gone.
    bool send(std::uint64_t number, MessageType type, std::uint32_t id, std::span<const std::byte> bytes);

    /// Turns readable when poll may have something; the same for the server's life.
    [[nodiscard]] int descriptor() const noexcept { return epoll_.get(); }

private:
    static constexpr std::size_t most_strangers = 64;
    static constexpr base::Nanoseconds stranger_limit = 2 * base::second;
    // A handshake is three short messages: whoever takes longer than this does not hold up those who wait.
    static constexpr base::Nanoseconds fair_time = 200 * base::millisecond;
    static constexpr base::Nanoseconds longest_between_looks = 200 * base::millisecond;
    // Numbers in the epoll set; connections have those between.
    static constexpr std::uint64_t listener_number = 0;
    static constexpr std::uint64_t timer_number = ~std::uint64_t{0};

    std::uint16_t add(std::vector<ListeningSocket> sockets);
    void accept_waiting();
    [[nodiscard]] bool accept_from(int listener);
    void serve(Connection& connection, const OnMessage& on_message, const OnLost& on_lost);
    void close(Connection& connection, std::string_view cause);
    void expire();
    void watch(int descriptor, std::uint64_t number, bool input, bool output);
    void set_accepting(bool yes);
    void set_timer();
    void tell(std::string_view text) { told_.warning("start-up: {}", text); }

    std::string key_;
    base::LogLimit told_;
    base::Clock clock_;
    base::FileDescriptor epoll_;
    base::FileDescriptor timer_;  // ticks while there are strangers, so that sleepers see their time end
    bool ticking_ = false;
    base::LookedTime looks_{longest_between_looks};
    base::Nanoseconds looked_ = 0;  // for so long somebody has polled: what strangers have had of their time
    std::vector<ListeningSocket> listeners_;
    std::map<std::uint64_t, Connection> connections_;
    std::set<std::uint64_t> strangers_;  // numbers rise, so the first is the oldest
    std::uint64_t next_number_ = listener_number + 1;
    bool accepting_ = true;
    base::Nanoseconds last_refusal_ = 0;  // of the kernel to accept
};

}  // namespace railmux::bootstrap

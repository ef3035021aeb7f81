#include "bootstrap/server.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace railmux::bootstrap {

namespace {

constexpr int most_accepted = 64;  // in one poll: whoever connects without end keeps nobody else waiting
constexpr base::Nanoseconds accept_pause = 100 * base::millisecond;  // after the kernel had no descriptor left
constexpr base::Nanoseconds tick = 50 * base::millisecond;           // fine enough for Server::fair_time

}  // namespace

Server::Server(std::string key, base::Logger& log, base::Clock clock)
    : key_(std::move(key)),
      told_(log),
      clock_(clock),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
    if (!epoll_.valid() || !timer_.valid()) {
        throw Error(ErrorCode::system, std::string("no descriptor to wait on: ") + std::strerror(errno),
                    "raise ulimit -n");
    }
    watch(timer_.get(), timer_number, true, false);
}

std::uint16_t Server::add(std::vector<ListeningSocket> sockets) {
    const auto port = sockets.front().port;
    for (auto& socket : sockets) {
        watch(socket.socket.get(), listener_number, accepting_, false);
        listeners_.push_back(std::move(socket));
    }
    return port;
}

void Server::watch(int descriptor, std::uint64_t number, bool input, bool output) {
    epoll_event event{};
    event.events = (input ? EPOLLIN : 0U) | (output ? EPOLLOUT : 0U);
    event.data.u64 = number;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event) != 0 && errno == ENOENT) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
    }
}

void Server::set_accepting(bool yes) {
    if (accepting_ == yes) return;
    accepting_ = yes;
    for (const auto& listener : listeners_) watch(listener.socket.get(), listener_number, yes, false);
}

void Server::set_timer() {
    const bool needed = !strangers_.empty() || !accepting_;
    if (ticking_ == needed) return;
    ticking_ = needed;
    const timespec period{0, needed ? tick : 0};
    const itimerspec plan{period, period};
    ::timerfd_settime(timer_.get(), 0, &plan, nullptr);  // setting it also takes back a tick that nobody has read
}

void Server::poll(const OnMessage& on_message, const OnLost& on_lost) {
    looked_ += looks_.look(clock_());
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
        const auto number = events[static_cast<std::size_t>(i)].data.u64;
        if (number == listener_number) {
            accept_waiting();
        } else if (number == timer_number) {
            std::uint64_t ticks = 0;
            [[maybe_unused]] const auto got = ::read(timer_.get(), &ticks, sizeof ticks);
        } else if (const auto found = connections_.find(number); found != connections_.end()) {
            serve(found->second, on_message, on_lost);
        }
    }
    if (!strangers_.empty() || !accepting_) expire();
    set_timer();
}

void Server::accept_waiting() {
    for (const auto& listener : listeners_) {
        for (int i = 0; i < most_accepted && strangers_.size() < most_strangers; ++i) {
            if (!accept_from(listener.socket.get())) break;
        }
    }
    if (strangers_.size() >= most_strangers) set_accepting(false);
}

bool Server::accept_from(int listener) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    auto* const where = reinterpret_cast<sockaddr*>(&address);
    const int accepted = ::accept4(listener, where, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (accepted < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            tell(std::string("nobody can be let in: ") + std::strerror(errno));
            last_refusal_ = clock_();
            set_accepting(false);
        }
        return false;
    }
    const auto number = next_number_++;
    connections_.emplace(number, Connection{.socket = base::FileDescriptor(accepted),
                                            .channel = Channel(Channel::Role::server, key_),
                                            .since = looked_,
                                            .number = number,
                                            .from = describe(*where)});
    strangers_.insert(number);
    watch(accepted, number, true, false);
    return true;
}

void Server::serve(Connection& connection, const OnMessage& on_message, const OnLost& on_lost) {
    connection.pump();
    auto& channel = connection.channel;
    while (!channel.inbox().empty()) {
        const auto message = std::move(channel.inbox().front());
        channel.inbox().pop_front();
        on_message(connection, message);
    }
    connection.flush();
    if (channel.state() != Channel::State::greeting) strangers_.erase(connection.number);
    if (connection.lost || channel.state() == Channel::State::failed) {
        if (on_lost && channel.state() != Channel::State::greeting) on_lost(connection);
        const bool early = channel.state() == Channel::State::greeting;
        const bool ours = channel.failure() == ErrorCode::wrong_key || channel.failure() == ErrorCode::wrong_version;
        auto cause = early ? std::string("it ended before its greeting was complete") : channel.failure_text();
        if (ours) cause.append("; ").append(channel.failure_cure());
        close(connection, cause);
        return;
    }
    watch(connection.socket.get(), connection.number, true, !channel.output().empty());
}

void Server::close(Connection& connection, std::string_view cause) {
    if (!cause.empty()) tell("connection from " + connection.from + " closed: " + std::string(cause));
    const auto number = connection.number;
    // A child of this process may have kept the descriptor: closing it would neither end the connection nor its events.
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, connection.socket.get(), nullptr);
    ::shutdown(connection.socket.get(), SHUT_RDWR);
    strangers_.erase(number);
    connections_.erase(number);  // ends `connection`
}

void Server::expire() {
    while (!strangers_.empty()) {
        auto& oldest = connections_.at(*strangers_.begin());
        const bool crowded = strangers_.size() >= most_strangers;
        if (looked_ - oldest.since <= (crowded ? fair_time : stranger_limit)) break;
        close(oldest, crowded ? "it is slow to greet and others wait" : "it did not finish its greeting within 2 s");
    }
    if (strangers_.size() < most_strangers && clock_() - last_refusal_ > accept_pause) set_accepting(true);
}

bool Server::send(std::uint64_t number, MessageType type, std::uint32_t id, std::span<const std::byte> bytes) {
    const auto found = connections_.find(number);
    if (found == connections_.end()) return false;
    auto& connection = found->second;
    connection.channel.send(type, id, bytes);
    connection.flush();
    // A loss shows as input too, so the next poll closes what is lost.
    watch(connection.socket.get(), number, true, !connection.channel.output().empty());
    return true;
}

}  // namespace railmux::bootstrap

#include "bootstrap/client.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"
#include "bootstrap/endpoint.hpp"

namespace railmux::bootstrap {

namespace {

constexpr base::Nanoseconds reach_limit = 10 * base::second;

/// Pumps until `over`; false when the time is over or the channel or socket failed.
template <typename Over>
bool pump_until(Connection& connection, base::Nanoseconds deadline, Over over) {
    while (true) {
        connection.pump();
        if (over()) return true;
        if (connection.lost || connection.channel.state() == Channel::State::failed) return false;
        const auto left = deadline - base::now_ns();
        if (left <= 0) return false;
        pollfd wait{connection.socket.get(), POLLIN, 0};
        if (!connection.channel.output().empty()) wait.events |= POLLOUT;
        ::poll(&wait, 1, static_cast<int>(std::min<base::Nanoseconds>(left / base::millisecond + 1, 1000)));
    }
}

[[noreturn]] void throw_failure(std::string_view where, const Connection& connection) {
    const auto& channel = connection.channel;
    if (channel.failure() == ErrorCode::wrong_key) {
        throw Error(ErrorCode::wrong_key, fmt::format("{} refused: the job keys differ", where),
                    std::string(channel.failure_cure()));
    }
    if (channel.failure() != ErrorCode::ok) {
        throw Error(channel.failure(), fmt::format("{}: {}", where, channel.failure_text()),
                    std::string(channel.failure_cure()));
    }
    throw Error(ErrorCode::unreachable,
                connection.lost ? fmt::format("{} closed the connection during the greeting", where)
                                : fmt::format("{} accepted the connection and said nothing in time", where),
                "is that a railmux process?");
}

}  // namespace

Connection open_channel(std::string_view where, std::string_view key, base::Nanoseconds deadline) {
    Connection connection{.socket = connect_to(where, deadline), .channel = Channel(Channel::Role::client, key)};
    connection.from = where;
    if (!pump_until(connection, deadline, [&] { return connection.channel.state() == Channel::State::open; })) {
        throw_failure(where, connection);
    }
    return connection;
}

Knock::Knock(std::string_view where, std::span<const std::byte> own, std::string_view key, base::Nanoseconds deadline)
    : where_(where),
      deadline_(deadline),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      reaching_(where, deadline),
      connection_{.socket = {}, .channel = Channel(Channel::Role::client, key)} {
    if (!epoll_.valid()) {
        throw Error(ErrorCode::system, std::string("no descriptor to wait on: ") + std::strerror(errno),
                    "raise ulimit -n");
    }
    connection_.channel.send(MessageType::contact, 0, own);
}

std::optional<std::vector<std::byte>> Knock::poll(base::Nanoseconds now) {
    auto& channel = connection_.channel;
    if (!connection_.socket.valid()) {
        connection_.socket = reaching_.poll(now);
        if (!connection_.socket.valid()) {
            watch(reaching_.descriptor(), false, true);
            return std::nullopt;
        }
    }
    connection_.pump();
    if (!channel.inbox().empty() && channel.inbox().front().type == MessageType::contact) {
        return std::move(channel.inbox().front().bytes);
    }
    const bool over = connection_.lost || channel.state() == Channel::State::failed || !channel.inbox().empty();
    if (over || now >= deadline_) throw_failure(where_, connection_);
    watch(connection_.socket.get(), true, !channel.output().empty());
    return std::nullopt;
}

base::Nanoseconds Knock::wake() const noexcept {
    return connection_.socket.valid() ? deadline_ : std::min(deadline_, reaching_.wake());
}

void Knock::watch(int descriptor, bool input, bool output) {
    if (descriptor < 0) return;
    epoll_event event{};
    event.events = (input ? EPOLLIN : 0U) | (output ? EPOLLOUT : 0U);
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event) != 0) {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
    }
}

std::vector<std::byte> exchange_contact(std::string_view where, std::span<const std::byte> own, std::string_view key,
                                        base::Nanoseconds deadline) {
    Knock knock(where, own, key, deadline);
    while (true) {
        const auto now = base::now_ns();
        if (auto answer = knock.poll(now)) return std::move(*answer);
        pollfd wait{knock.descriptor(), POLLIN, 0};
        const auto left = (knock.wake() - now) / base::millisecond + 1;
        ::poll(&wait, 1, static_cast<int>(std::clamp<base::Nanoseconds>(left, 1, 1'000'000)));
    }
}

std::optional<Job> Job::read(const Config& config) {
    Job job;
    job.id = config.text("job.id");
    job.key = config.text("job.key");
    job.rank = static_cast<std::uint32_t>(config.number("job.rank"));
    job.size = static_cast<std::uint32_t>(config.number("job.size"));
    const auto servers = config.text("job.server");
    if (servers.empty()) {
        if (job.size == 1) return std::nullopt;
        throw Error(ErrorCode::invalid_config, fmt::format("job.size is {}, but there is no job.server", job.size),
                    "start the job with `railmux run -n N`, or unset RAILMUX_JOB_SIZE");
    }
    if (job.rank >= job.size) {
        throw Error(ErrorCode::invalid_config, fmt::format("job.rank is {} in a job of {}", job.rank, job.size),
                    "start the job with `railmux run -n N`");
    }
    for (const auto place : base::split(servers, ',')) job.servers.emplace_back(base::trim(place));
    return job;
}

Connection reach_server(const std::vector<std::string>& servers, std::string_view key, base::Nanoseconds limit) {
    std::string causes;
    bool refused = false;
    const auto deadline = base::now_ns() + limit;
    for (std::size_t i = 0; i < servers.size(); ++i) {
        // What cannot be reached at once may be the wrong way, so only the last place is given all the time.
        const auto own = i + 1 == servers.size() ? deadline : std::min(deadline, base::now_ns() + base::second);
        try {
            return open_channel(servers[i], key, own);
        } catch (const Error& error) {
            // Another host may have the same address (of a container bridge, say), and another job's server there.
            refused = refused || error.code() == ErrorCode::wrong_key;
            causes += std::string("\n  ") + error.what();
        }
    }
    throw Error(refused ? ErrorCode::wrong_key : ErrorCode::bootstrap, "the job's server cannot be joined:" + causes,
                "start the process with `railmux run`, and see that its hosts reach each other");
}

JobClient::JobClient(const Job& job) : connection_(reach_server(job.servers, job.key, reach_limit)), size_(job.size) {}

JobClient::~JobClient() {
    connection_.channel.send(MessageType::leave, 0, {});
    connection_.flush();
}

void JobClient::publish(std::uint32_t rank, std::span<const std::byte> value) {
    connection_.channel.send(MessageType::put, rank, value);
    connection_.flush();
}

void JobClient::ask(std::uint32_t rank) {
    connection_.channel.send(MessageType::get, rank, {});
    connection_.flush();
}

void JobClient::leave() {
    connection_.channel.send(MessageType::leave, 1, {});
    connection_.flush();
}

std::vector<JobClient::News> JobClient::poll() {
    if (!lost()) connection_.pump();
    if (lost()) connection_.socket.reset();  // or whoever sleeps would be woken by it for ever
    std::vector<News> news;
    auto& inbox = connection_.channel.inbox();
    for (; !inbox.empty(); inbox.pop_front()) {
        auto& message = inbox.front();
        switch (message.type) {
            case MessageType::size: size_ = std::max(size_, message.id); break;
            case MessageType::value:
            case MessageType::joined:
            case MessageType::left:
            case MessageType::lost:
                if (message.id < size_) news.push_back({message.type, message.id, std::move(message.bytes)});
                break;
            default: break;  // not for processes
        }
    }
    return news;
}

}  // namespace railmux::bootstrap

#include "bootstrap/client.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "base/text.hpp"
#include "bootstrap/endpoint.hpp"

namespace railmux::bootstrap {

namespace {

constexpr base::Nanoseconds join_limit = 10 * base::second;

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
                    "give both sides the same job.key (RAILMUX_JOB_KEY)");
    }
    if (channel.failure() != ErrorCode::ok) {
        throw Error(channel.failure(), fmt::format("{}: {}", where, channel.failure_text()),
                    channel.failure() == ErrorCode::wrong_version ? "use one release of railmux on both sides"
                                                                  : "is that the port of a railmux process?");
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

std::vector<std::byte> exchange_contact(std::string_view where, std::span<const std::byte> own, std::string_view key,
                                        base::Nanoseconds deadline) {
    auto connection = open_channel(where, key, deadline);
    auto& channel = connection.channel;
    channel.send(MessageType::contact, 0, own);
    if (!pump_until(connection, deadline, [&] { return !channel.inbox().empty(); }) ||
        channel.inbox().front().type != MessageType::contact) {
        throw_failure(where, connection);
    }
    return std::move(channel.inbox().front().bytes);
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

namespace {

Connection join(const Job& job) {
    std::string causes;
    bool refused = false;
    const auto deadline = base::now_ns() + join_limit;
    for (std::size_t i = 0; i < job.servers.size(); ++i) {
        // What cannot be reached at once may be the wrong way, so only the last place is given all the time.
        const auto limit = i + 1 == job.servers.size() ? deadline : std::min(deadline, base::now_ns() + base::second);
        try {
            return open_channel(job.servers[i], job.key, limit);
        } catch (const Error& error) {
            // Another host may have the same address (of a container bridge, say), and another job's server there.
            refused = refused || error.code() == ErrorCode::wrong_key;
            causes += std::string("\n  ") + error.what();
        }
    }
    throw Error(refused ? ErrorCode::wrong_key : ErrorCode::bootstrap, "the job's server cannot be joined:" + causes,
                "start the process with `railmux run`, and see that its hosts reach each other");
}

}  // namespace

JobClient::JobClient(const Job& job) : connection_(join(job)) {}

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

std::vector<JobClient::Value> JobClient::poll() {
    if (!lost()) connection_.pump();
    std::vector<Value> values;
    auto& inbox = connection_.channel.inbox();
    for (; !inbox.empty(); inbox.pop_front()) {
        auto& message = inbox.front();
        if (message.type == MessageType::value) values.push_back({message.id, std::move(message.bytes)});
    }
    return values;
}

}  // namespace railmux::bootstrap

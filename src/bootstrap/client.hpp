// The connecting side of channels: knocking at a process that listens, and the job's server.
//
// Threads: one thread at a time per object.
// Lifetime: owns its socket.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <railmux/config.hpp>

#include "base/clock.hpp"
#include "bootstrap/connection.hpp"
#include "bootstrap/endpoint.hpp"

namespace railmux::bootstrap {

/// Connects and finishes the handshake. Throws Error(unreachable, wrong_key, wrong_version, protocol).
[[nodiscard]] Connection open_channel(std::string_view where, std::string_view key, base::Nanoseconds deadline);

/// Knocks at the process that listens at `where`: gives it our address and takes its own, without blocking.
class Knock {
public:
    /// Resolves the name, which may block. Throws Error(unreachable, invalid_argument).
    Knock(std::string_view where, std::span<const std::byte> own, std::string_view key, base::Nanoseconds deadline);

    /// Moves on; the other side's address when it has come. Throws as open_channel.
    [[nodiscard]] std::optional<std::vector<std::byte>> poll(base::Nanoseconds now);
    /// What turns readable when poll has something to do, and when to poll at the latest.
    [[nodiscard]] int descriptor() const noexcept { return epoll_.get(); }
    [[nodiscard]] base::Nanoseconds wake() const noexcept;
    [[nodiscard]] const std::string& where() const noexcept { return where_; }
    [[nodiscard]] base::Nanoseconds deadline() const noexcept { return deadline_; }
    /// Once, when it takes more than a moment: what stands in the way.
    [[nodiscard]] std::string take_trouble() { return reaching_.take_trouble(); }

private:
    void watch(int descriptor, bool input, bool output);

    std::string where_;
    base::Nanoseconds deadline_;
    base::FileDescriptor epoll_;
    Reaching reaching_;
    Connection connection_;  // has a socket once that is connected
};

/// Gives our address to the process that listens at `where` and returns its own. Throws as open_channel.
[[nodiscard]] std::vector<std::byte> exchange_contact(std::string_view where, std::span<const std::byte> own,
                                                      std::string_view key, base::Nanoseconds deadline);

/// What `railmux run` tells each process.
struct Job {
    std::string id;
    std::string key;
    std::uint32_t rank = 0;
    std::uint32_t size = 1;
    std::vector<std::string> servers;  // places to find the job's server at, in order of preference

    /// Nothing when the process was not started by `railmux run`. Throws Error(invalid_config) for half a job: a
    /// process that silently worked alone would be found out much later.
    [[nodiscard]] static std::optional<Job> read(const Config& config);
};

/// A connection to the job's server: the first of its places that answers and has the job's key, within `limit`. Throws
/// Error(bootstrap, wrong_key).
[[nodiscard]] Connection reach_server(const std::vector<std::string>& servers, std::string_view key,
                                      base::Nanoseconds limit);

/// A process's line to its job's server, which keeps a value for each rank.
class JobClient {
public:
    /// Joins the job. Throws Error(bootstrap, wrong_key).
    explicit JobClient(const Job& job);
    ~JobClient();
    JobClient(const JobClient&) = delete;
    JobClient& operator=(const JobClient&) = delete;

    /// This process is `rank`, and that its value.
    void publish(std::uint32_t rank, std::span<const std::byte> value);
    /// Asks for a rank's value; poll hands it out as soon as that rank has published it.
    void ask(std::uint32_t rank);
    /// This process leaves the job, and the others are to be told.
    void leave();

    struct News {
        MessageType type{};  // value, if asked for; and unasked joined, left and lost
        std::uint32_t rank = 0;
        std::vector<std::byte> bytes;  // its value
    };
    [[nodiscard]] std::vector<News> poll();
    /// Ranks that the job has, as far as is known.
    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
    /// The launcher has gone, or talks nonsense; no values come any more.
    [[nodiscard]] bool lost() const noexcept {
        return connection_.lost || connection_.channel.state() == Channel::State::failed;
    }
    [[nodiscard]] int descriptor() const noexcept { return connection_.socket.get(); }

private:
    Connection connection_;
    std::uint32_t size_;
};

}  // namespace railmux::bootstrap

// Roster: who is who in a job, as its server keeps it: the value of each rank, who waits for which, who came, left and died,
// and who is told of it.
//
// A connection that puts a value is that rank's process from then on. In a job that grows or mends itself (`open`) all
// processes hear of ranks that come later, or come again, and of those whose connection ended without their leaving; in others
// only of those that asked for it as they left. Of a rank's processes they hear one after the other: each one's end is told
// before the next one joins.
//
// A rank is promised to the launcher that starts its process, until that has come, or has ended without coming, or the launcher
// has gone. One that is promised, or whose process is there, is given to nobody else.
//
// Threads: one thread at a time per object.
// Lifetime: owns the values; connections are known by number, so a lost one does no harm.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/channel.hpp"

namespace railmux::bootstrap {

class Roster {
public:
    struct Options {
        std::uint32_t size = 1;  // ranks at first
        bool open = false;       // others may join
    };
    /// Sends a message to a connection.
    using Send =
        std::function<void(std::uint64_t connection, MessageType type, std::uint32_t id, std::span<const std::byte>)>;

    /// The launcher whose job it is, among the connections.
    static constexpr std::uint64_t own_launcher = 0;

    Roster(Options options, Send send) : options_(options), size_(options.size), send_(std::move(send)) {
        promise(0, size_, own_launcher);
    }

    [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

    void take(std::uint64_t connection, const Message& message);
    /// The connection has gone.
    void lost(std::uint64_t connection);
    /// A launcher starts a process of that rank, or the next one. Why it must not; empty if it may.
    [[nodiscard]] std::string claim(std::uint64_t launcher, std::uint32_t rank);
    /// A launcher's process of that rank has ended, whether it ever came or not, and there is no next one.
    void ended(std::uint64_t launcher, std::uint32_t rank);
    /// The job is being ended: launchers that joined it are told, and nobody hears any more of who dies of it.
    void end();

    /// Ranks that a job can have.
    static constexpr std::uint32_t most_ranks = 1U << 24;

private:
    enum class Standing : std::uint8_t {
        there,
        ended,  // in good order, and nobody was told
        left,   // ... and all were
        lost,
    };
    struct Member {
        Standing standing{};
        std::uint64_t connection = 0;
        std::vector<std::byte> value;
        std::uint64_t launcher = own_launcher;  // that started it
    };
    struct Promise {
        std::uint32_t end = 0;  // of ranks in a row
        std::uint64_t launcher = own_launcher;
    };
    using Promises = std::map<std::uint32_t, Promise>;  // by the first rank

    void put(std::uint64_t connection, std::uint32_t rank, const std::vector<std::byte>& value);
    void get(std::uint64_t connection, std::uint32_t rank);
    void leave(std::uint64_t connection, bool tell);
    void enroll(std::uint64_t connection, const Message& message);
    [[nodiscard]] std::string assign(std::uint64_t launcher, const Message& message, std::uint32_t& first);
    void promise(std::uint32_t first, std::uint32_t count, std::uint64_t launcher) {
        promises_[first] = {first + count, launcher};
    }
    [[nodiscard]] Promises::iterator promise_of(std::uint32_t rank);
    void take_from(Promises::iterator promise, std::uint32_t rank);
    void forget(std::uint64_t connection);
    void tell_others(MessageType type, std::uint32_t rank, std::span<const std::byte> value);
    void refuse(std::uint64_t connection, std::string_view why);

    Options options_;
    std::uint32_t size_;
    Send send_;
    std::map<std::uint32_t, Member> members_;         // those that ever came
    std::map<std::uint64_t, std::uint32_t> rank_of_;  // of connections
    std::map<std::uint32_t, std::set<std::uint64_t>> waiting_;
    std::set<std::uint64_t> launchers_;
    Promises promises_;
};

}  // namespace railmux::bootstrap

#include "bootstrap/running_job.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include <railmux/error.hpp>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/crypto.hpp"
#include "base/host.hpp"
#include "base/text.hpp"
#include "bootstrap/client.hpp"
#include "bootstrap/roster.hpp"
#include "bootstrap/server.hpp"

namespace railmux::bootstrap {

namespace {

constexpr std::size_t most_addresses = 6;  // of this host that are handed out
constexpr base::Nanoseconds join_limit = 3 * base::second;

/// A private folder for the job's socket; gone at the end.
class SocketFolder {
public:
    SocketFolder() {
        auto pattern = (std::filesystem::temp_directory_path() / "railmux-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {  // makes it 0700
            throw Error(ErrorCode::system, "no folder for the job's socket: " + std::string(std::strerror(errno)),
                        "set TMPDIR to a folder that may be written to");
        }
        path_ = pattern;
    }
    ~SocketFolder() { remove(); }
    SocketFolder(const SocketFolder&) = delete;
    SocketFolder& operator=(const SocketFolder&) = delete;
    [[nodiscard]] const std::string& path() const noexcept { return path_; }
    void remove() const noexcept {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

private:
    std::string path_;
};

std::string random_text() { return fmt::format("{:016x}{:016x}", base::random_u64(), base::random_u64()); }

/// The launcher's own job.
class OwnJob final : public RunningJob {
public:
    OwnJob(const RunOptions& options, base::Logger& log) : options_(options), log_(log) {}

    void clean_up() const noexcept override {
        folder_.remove();
        if (!options_.name.empty()) JobFile::remove_leftover(options_.name, identity_.id);
    }

    /// The Unix socket serves this host, other network namespaces included; the addresses serve other hosts.
    std::uint32_t open() override {
        const bool open = !options_.name.empty() || options_.restarts > 0 || options_.keep_going;
        roster_.emplace(Roster::Options{.size = options_.processes, .open = open},
                        [this](auto to, auto type, auto id, auto bytes) { server_->send(to, type, id, bytes); });
        server_.emplace(identity_.key, log_);
        const auto socket = "unix:" + folder_.path() + "/job";
        server_->listen(socket);
        identity_.servers = socket;
        if (!options_.hosts.empty() || !options_.name.empty()) listen_to_others();
        if (!options_.name.empty()) file_.emplace(options_.name, identity_);
        return 0;
    }

    [[nodiscard]] const JobIdentity& identity() const override { return identity_; }
    [[nodiscard]] int descriptor() const override { return server_->descriptor(); }

    [[nodiscard]] bool serve() override {
        server_->poll([this](Connection& from, const Message& message) { roster_->take(from.number, message); },
                      [this](Connection& from) { roster_->lost(from.number); });
        identity_.size = roster_->size();
        return true;
    }
    [[nodiscard]] std::string claim(std::uint32_t rank) override {
        static_cast<void>(serve());  // what its process said last, and its end
        return roster_->claim(Roster::own_launcher, rank);
    }
    void ended(std::uint32_t rank) override { roster_->ended(Roster::own_launcher, rank); }
    void end() override { roster_->end(); }

private:
    void listen_to_others() {
        const auto port = server_->listen(options_.ports);
        auto places = own_addresses();
        places.resize(std::min(places.size(), most_addresses));
        places.push_back(base::host_name());
        for (const auto& place : places) identity_.servers += fmt::format(",{}:{}", place, port);
    }

    const RunOptions& options_;
    base::Logger& log_;
    SocketFolder folder_;
    JobIdentity identity_{.id = random_text(), .key = random_text(), .servers = {}, .size = options_.processes};
    std::optional<Roster> roster_;
    std::optional<Server> server_;
    std::optional<JobFile> file_;
};

/// A job whose server is another launcher.
class JoinedJob final : public RunningJob {
public:
    explicit JoinedJob(const RunOptions& options) : options_(options) {}

    void clean_up() const noexcept override {}

    std::uint32_t open() override {
        identity_ = JobFile::read(options_.join);
        std::vector<std::string> servers;
        for (const auto place : base::split(identity_.servers, ',')) servers.emplace_back(base::trim(place));
        connection_.emplace(reach_server(servers, identity_.key, join_limit));
        const auto answer = enroll(options_.processes, options_.rank);
        base::Reader size(answer.bytes);
        identity_.size = size.read<std::uint32_t>();
        if (const auto why = refusal(answer); !why.empty()) {
            throw Error(ErrorCode::bootstrap, fmt::format("job {}: {}", options_.join, why),
                        "only ranks whose process has ended can be taken; without --rank there are new ones");
        }
        if (answer.type != MessageType::enrolled || !size.done()) {
            throw Error(ErrorCode::protocol, fmt::format("job {}: its server makes no sense", options_.join),
                        "use one release of railmux on both sides");
        }
        return answer.id;
    }

    [[nodiscard]] const JobIdentity& identity() const override { return identity_; }
    [[nodiscard]] int descriptor() const override { return connection_->socket.get(); }

    [[nodiscard]] bool serve() override {
        if (!connection_->socket.valid()) return true;
        connection_->pump();
        auto& inbox = connection_->channel.inbox();
        for (; !inbox.empty(); inbox.pop_front()) take(inbox.front());
        // Its first launcher has gone: those who know each other go on.
        if (connection_->lost || connection_->channel.state() == Channel::State::failed) connection_->socket.reset();
        return !over_;
    }
    [[nodiscard]] std::string claim(std::uint32_t rank) override {
        if (!connection_->socket.valid()) return {};  // nobody else can claim it, either
        return refusal(enroll(1, rank));
    }
    void ended(std::uint32_t rank) override {
        if (!connection_->socket.valid()) return;
        connection_->channel.send(MessageType::ended, rank, {});
        connection_->flush();
    }
    void end() override {}  // the others of the job live on

private:
    /// The answer: enrolled, refused or nonsense.
    Message enroll(std::uint32_t count, std::optional<std::uint32_t> rank) {
        base::Writer which;
        if (rank) which.write(*rank);
        connection_->channel.send(MessageType::enroll, count, which.view());
        const auto deadline = base::now_ns() + join_limit;
        while (true) {
            auto message = receive(deadline);
            if (message.type != MessageType::size && message.type != MessageType::over) return message;
            take(message);
        }
    }

    static std::string refusal(const Message& answer) {
        if (answer.type != MessageType::refused) return {};
        return {reinterpret_cast<const char*>(answer.bytes.data()), answer.bytes.size()};
    }

    void take(const Message& message) {
        if (message.type == MessageType::size) identity_.size = message.id;
        over_ = over_ || message.type == MessageType::over;
    }

    Message receive(base::Nanoseconds deadline) {
        auto& inbox = connection_->channel.inbox();
        for (connection_->pump(); inbox.empty(); connection_->pump()) {
            const bool failed = connection_->channel.state() == Channel::State::failed;
            if (connection_->lost || failed || base::now_ns() > deadline) {
                throw Error(ErrorCode::bootstrap, fmt::format("job {}: its server does not answer", options_.join),
                            "is the job ending?");
            }
            pollfd wait{connection_->socket.get(), POLLIN, 0};
            ::poll(&wait, 1, 100);
        }
        auto message = std::move(inbox.front());
        inbox.pop_front();
        return message;
    }

    const RunOptions& options_;
    JobIdentity identity_;
    std::optional<Connection> connection_;
    bool over_ = false;
};

}  // namespace

std::unique_ptr<RunningJob> make_job(const RunOptions& options, base::Logger& log) {
    if (options.join.empty()) return std::make_unique<OwnJob>(options, log);
    return std::make_unique<JoinedJob>(options);
}

}  // namespace railmux::bootstrap

#include "bootstrap/launcher.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <railmux/error.hpp>

#include "base/clock.hpp"
#include "base/crypto.hpp"
#include "base/host.hpp"
#include "bootstrap/child.hpp"
#include "bootstrap/guard.hpp"
#include "bootstrap/launch_plan.hpp"
#include "bootstrap/server.hpp"
#include "bootstrap/signals.hpp"
#include "bootstrap/value_store.hpp"

namespace railmux::bootstrap {

namespace {

// What stays behind in a process's session may hold its output open; when all processes have ended it is given this
// long.
constexpr base::Nanoseconds drain_limit = base::second;
constexpr base::Nanoseconds kill_period = base::second / 2;  // once the grace is over
constexpr int timed_out = 124;                               // as timeout(1) has it
constexpr std::size_t most_addresses = 6;                    // of this host that are handed out

/// A private folder for the job's socket; gone at the end.
class PrivateFolder {
public:
    PrivateFolder() {
        auto pattern = (std::filesystem::temp_directory_path() / "railmux-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {  // makes it 0700
            throw Error(ErrorCode::system, "no folder for the job's socket: " + std::string(std::strerror(errno)),
                        "set TMPDIR to a folder that may be written to");
        }
        path_ = pattern;
    }
    ~PrivateFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    PrivateFolder(const PrivateFolder&) = delete;
    PrivateFolder& operator=(const PrivateFolder&) = delete;
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
};

std::string random_text() { return fmt::format("{:016x}{:016x}", base::random_u64(), base::random_u64()); }

class Launcher {
public:
    explicit Launcher(const RunOptions& options)
        : options_(options),
          guard_(folder_.path()),
          server_(job_.key, log_),
          values_(std::size_t{options.processes} * 2 + 1024, [this](auto connection, auto id, auto value) {
              server_.send(connection, MessageType::value, id, value);
          }) {}
    ~Launcher() {
        for (auto& child : children_) bury(child);
    }
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;

    int run() {
        const auto plans = make_plans();
        start_all(plans);
        while (unfinished()) {
            wait_for_something();
            check_time();
        }
        for (auto& child : children_) {
            for (auto* stream : {&child.out, &child.err}) {
                if (stream->open()) stream->finish();
            }
        }
        return result_;
    }

private:
    /// The Unix socket serves this host, other network namespaces included; the addresses serve other hosts.
    void open_server() {
        const auto socket = "unix:" + folder_.path() + "/job";
        server_.listen(socket);
        job_.servers = socket;
        if (options_.hosts.empty()) return;
        const auto port = server_.listen(options_.ports);
        auto places = own_addresses();
        places.resize(std::min(places.size(), most_addresses));
        places.push_back(base::host_name());
        for (const auto& place : places) job_.servers += fmt::format(",{}:{}", place, port);
    }

    /// Everything that can be wrong is found out before anything starts.
    std::vector<ChildPlan> make_plans() {
        if (options_.command.empty()) throw Error(ErrorCode::invalid_argument, "no program to run", "name one");
        open_server();
        const auto hosts = place_ranks(options_);
        std::vector<ChildPlan> plans;
        children_.resize(options_.processes);
        for (std::uint32_t rank = 0; rank < options_.processes; ++rank) {
            children_[rank].rank = rank;
            children_[rank].host = hosts[rank];
            plans.push_back(plan_child(options_, job_, rank, hosts[rank]));
            const auto& program = plans.back().command[0];
            if (rank > 0 && program == plans[rank - 1].command[0]) continue;
            if (!find_program(program).empty()) continue;
            throw Error(ErrorCode::invalid_argument, "there is no program " + program,
                        "check the name; a program of this folder needs ./ in front");
        }
        return plans;
    }

    void start_all(const std::vector<ChildPlan>& plans) {
        for (auto& child : children_) {
            start(child, plans[child.rank], options_.prefix ? fmt::format("[{}] ", child.rank) : std::string());
            guard_.watch(child.pid);
            serve();  // the first ones need not wait for the last to be started
        }
    }

    [[nodiscard]] bool unfinished() {
        const auto any = [&](auto what) { return std::any_of(children_.begin(), children_.end(), what); };
        if (any([](const Child& child) { return child.running; })) return true;
        if (drain_until_ == 0) drain_until_ = base::now_ns() + drain_limit;
        return base::now_ns() < drain_until_ && any([](const Child& c) { return c.out.open() || c.err.open(); });
    }

    void wait_for_something() {
        std::vector<pollfd> waits{{signals_.descriptor(), POLLIN, 0}, {server_.descriptor(), POLLIN, 0}};
        std::vector<OutputStream*> streams;
        for (auto& child : children_) {
            for (auto* stream : {&child.out, &child.err}) {
                if (!stream->open()) continue;
                waits.push_back({stream->descriptor(), POLLIN, 0});
                streams.push_back(stream);
            }
        }
        const bool timed = ending_ || drain_until_ > 0 || options_.timeout.count() > 0;
        ::poll(waits.data(), waits.size(), timed ? 50 : -1);
        for (std::size_t i = 0; i < streams.size(); ++i) {
            if (waits[i + 2].revents != 0) streams[i]->forward();
        }
        serve();
        read_signals();
    }

    void serve() {
        server_.poll([&](Connection& connection, const Message& message) { values_.take(connection.number, message); },
                     [&](Connection& connection) { values_.forget(connection.number); });
    }

    void read_signals() {
        while (const auto signal = signals_.next()) {
            if (*signal != SIGCHLD) {
                pass_on(*signal);
                continue;
            }
            for (auto& child : children_) {
                if (take_end(child)) judge_end(child);
            }
        }
    }

    /// The first is passed on, so that the processes can end in their own way; the second is meant seriously.
    void pass_on(int signal) {
        if (result_ == 0) result_ = 128 + signal;
        const bool again = std::exchange(interrupted_, true);
        for (auto& child : children_) signal_child(child, again ? SIGKILL : signal);
        if (!ending_) kill_at_ = base::now_ns() + grace();
        ending_ = true;
    }

    void judge_end(const Child& child) {
        if (exit_status(child) == 0 || ending_) return;
        const auto where = child.host.empty() ? std::string() : " on host " + child.host;
        result_ = exit_status(child);
        end_job(fmt::format("rank {}{} {}", child.rank, where, describe_end(child)));
    }

    void end_job(const std::string& why) {
        fmt::print(stderr, "railmux run: {}; ending the job\n", why);
        ending_ = true;
        kill_at_ = base::now_ns() + grace();
        for (auto& child : children_) signal_child(child, SIGTERM);
    }

    void check_time() {
        const auto now = base::now_ns();
        if (!ending_ && options_.timeout.count() > 0 && now - started_ > options_.timeout.count() * base::second) {
            result_ = timed_out;
            end_job(fmt::format("not over after {} s", options_.timeout.count()));
        }
        if (ending_ && now > kill_at_) {
            for (auto& child : children_) signal_child(child, SIGKILL);
            kill_at_ = now + kill_period;
        }
    }

    [[nodiscard]] base::Nanoseconds grace() const noexcept { return std::chrono::nanoseconds(options_.grace).count(); }

    RunOptions options_;
    base::Logger log_{base::LogLevel::warning, "railmux run: "};
    JobIdentity job_{.id = random_text(), .key = random_text(), .servers = {}};
    PrivateFolder folder_;
    Guard guard_;  // before all that opens descriptors
    Signals signals_;
    Server server_;
    ValueStore values_;
    std::vector<Child> children_;
    base::Nanoseconds started_ = base::now_ns();
    base::Nanoseconds kill_at_ = 0;
    base::Nanoseconds drain_until_ = 0;
    bool ending_ = false;
    bool interrupted_ = false;
    int result_ = 0;
};

}  // namespace

int run_job(const RunOptions& options) { return Launcher(options).run(); }

}  // namespace railmux::bootstrap

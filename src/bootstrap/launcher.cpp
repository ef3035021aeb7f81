#include "bootstrap/launcher.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>

#include <railmux/error.hpp>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/crypto.hpp"
#include "base/host.hpp"
#include "base/text.hpp"
#include "base/values.hpp"
#include "bootstrap/child.hpp"
#include "bootstrap/server.hpp"

namespace railmux::bootstrap {

namespace {

constexpr base::Nanoseconds grace = 3 * base::second;  // between asking the others to end and ending them

/// The values of the job, by rank, and who waits for which.
class ValueStore {
public:
    ValueStore(Server& server, std::uint32_t size) : server_(server), size_(size) {}

    void take(Connection& from, const Message& message) {
        if (message.id >= size_) return;  // no such rank: nothing to keep or to wait for
        if (message.type == MessageType::put) {
            values_[message.id] = message.bytes;
            std::erase_if(waiting_, [&](const Waiting& w) { return w.rank == message.id && answer(w); });
        } else if (message.type == MessageType::get) {
            const Waiting waiting{from.number, message.id};
            if (!values_.contains(message.id) || !answer(waiting)) waiting_.push_back(waiting);
        }
    }

private:
    struct Waiting {
        std::uint64_t connection = 0;
        std::uint32_t rank = 0;
    };
    bool answer(const Waiting& waiting) {
        if (Connection* to = server_.find(waiting.connection); to != nullptr) {
            to->channel.send(MessageType::value, waiting.rank, values_[waiting.rank]);
            to->pump();
        }
        return true;
    }

    Server& server_;
    std::uint32_t size_;
    std::map<std::uint32_t, std::vector<std::byte>> values_;
    std::vector<Waiting> waiting_;
};

/// A private folder for the job's socket; gone at the end.
class PrivateFolder {
public:
    PrivateFolder() {
        auto pattern = (std::filesystem::temp_directory_path() / "railmux-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) {
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

/// The host of each rank: in turn, each as often in a row as it has slots.
std::vector<std::string> place_ranks(const RunOptions& options) {
    std::vector<std::string> slots;
    for (const auto& entry : options.hosts) {
        const auto colon = entry.rfind(':');
        const auto count =
            colon == std::string::npos ? std::optional<std::uint64_t>(1) : base::parse_count(entry.substr(colon + 1));
        const auto host = count ? entry.substr(0, colon) : entry;  // a colon that is no slot count belongs to the name
        slots.insert(slots.end(), std::clamp<std::uint64_t>(count.value_or(1), 1, options.processes), host);
    }
    std::vector<std::string> hosts;
    for (unsigned rank = 0; rank < options.processes; ++rank) {
        hosts.push_back(slots.empty() ? std::string() : slots[rank % slots.size()]);
    }
    return hosts;
}

std::string quoted(const std::string& text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

class Launcher {
public:
    explicit Launcher(const RunOptions& options)
        : options_(options), server_(key_, log_), values_(server_, options.processes) {}
    ~Launcher() { ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr); }
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;

    int run() {
        if (options_.command.empty()) throw Error(ErrorCode::invalid_argument, "no program to run");
        take_signals();
        open_server();
        start_all();
        while (std::any_of(children_.begin(), children_.end(),
                           [](const Child& c) { return c.running || c.out.open() || c.err.open(); })) {
            wait_for_something();
            check_time();
        }
        return result_;
    }

private:
    void take_signals() {
        sigset_t mask;
        ::sigemptyset(&mask);
        for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&mask, signal);
        ::sigprocmask(SIG_BLOCK, &mask, &old_mask_);
        signals_.reset(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
    }

    void open_server() {
        const auto socket = "unix:" + folder_.path() + "/job";
        server_.listen(socket);
        place_ = socket;
        if (!options_.hosts.empty()) place_ += "," + base::host_name() + ":" + std::to_string(server_.listen("0"));
    }

    void start_all() {
        const auto hosts = place_ranks(options_);
        if (options_.hosts.empty() && options_.launch.empty() && find_program(options_.command[0]).empty()) {
            throw Error(ErrorCode::invalid_argument, "there is no program " + options_.command[0],
                        "check the name; a program of this folder needs ./ in front");
        }
        children_.resize(options_.processes);
        for (std::uint32_t rank = 0; rank < options_.processes; ++rank) {
            auto& child = children_[rank];
            child.rank = rank;
            child.host = hosts[rank];
            try {
                start(child, plan_for(child), options_.prefix);
            } catch (const Error&) {
                for (const auto& other : children_) signal_child(other, SIGKILL);
                for (auto& other : children_) {
                    if (other.running) ::waitpid(other.pid, nullptr, 0);
                }
                throw;
            }
        }
    }

    [[nodiscard]] ChildPlan plan_for(const Child& child) const {
        ChildPlan plan;
        std::vector<std::string> job{"RAILMUX_JOB_ID=" + id_, fmt::format("RAILMUX_JOB_RANK={}", child.rank),
                                     fmt::format("RAILMUX_JOB_SIZE={}", options_.processes),
                                     "RAILMUX_JOB_SERVER=" + place_};
        const bool here = child.host.empty() || child.host == "localhost" || child.host == base::host_name();
        auto launch = options_.launch;
        if (launch.empty() && !here) launch = "ssh {host}";
        if (launch.empty()) {
            plan.command = options_.command;
            plan.environment = job;
            plan.environment.push_back("RAILMUX_JOB_KEY=" + key_);
            return plan;
        }
        for (const auto word : base::split(launch, ' ')) {
            if (word.empty()) continue;
            std::string text(word);
            for (auto at = text.find("{host}"); at != std::string::npos; at = text.find("{host}")) {
                text.replace(at, 6, child.host);
            }
            plan.command.push_back(text);
        }
        add_remote_command(plan, job);
        return plan;
    }

    /// Behind a launch command the environment may not arrive, so it is given on the command line; all but the key, which
    /// must not show in the process list and goes over standard input.
    void add_remote_command(ChildPlan& plan, std::vector<std::string> variables) const {
        for (char** entry = environ; *entry != nullptr; ++entry) {
            const std::string text(*entry);
            const auto name = text.substr(0, text.find('='));
            const bool ours = name.starts_with("RAILMUX_") && !name.starts_with("RAILMUX_JOB_");
            if (ours || std::find(options_.environment.begin(), options_.environment.end(), name) !=
                            options_.environment.end()) {
                variables.push_back(text);
            }
        }
        const std::string script =
            "IFS= read -r RAILMUX_JOB_KEY; export RAILMUX_JOB_KEY; cd \"$1\" || exit 126; shift; exec env \"$@\"";
        std::vector<std::string> words{"sh", "-c", script, "sh", std::filesystem::current_path().string()};
        words.insert(words.end(), variables.begin(), variables.end());
        words.insert(words.end(), options_.command.begin(), options_.command.end());
        const bool shell = std::filesystem::path(plan.command[0]).filename() == "ssh";  // it joins its arguments
        for (const auto& word : words) plan.command.push_back(shell ? quoted(word) : word);
        plan.input = key_ + "\n";
    }

    void wait_for_something() {
        std::vector<pollfd> waits{{signals_.get(), POLLIN, 0}};
        for (const int descriptor : server_.descriptors()) waits.push_back({descriptor, POLLIN, 0});
        for (auto& child : children_) {
            for (auto* stream : {&child.out, &child.err}) {
                if (stream->open()) waits.push_back({stream->descriptor(), POLLIN, 0});
            }
        }
        const bool timed = ending_ || options_.timeout.count() > 0;
        ::poll(waits.data(), waits.size(), timed ? 50 : 1000);
        const auto readable = [&](int descriptor) {
            return std::any_of(waits.begin(), waits.end(),
                               [&](const pollfd& w) { return w.fd == descriptor && w.revents != 0; });
        };
        for (auto& child : children_) {
            for (auto* stream : {&child.out, &child.err}) {
                if (stream->open() && readable(stream->descriptor())) stream->forward();
            }
        }
        server_.poll([&](Connection& connection, const Message& message) { values_.take(connection, message); });
        read_signals();
    }

    void read_signals() {
        signalfd_siginfo info{};
        while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
            const int signal = static_cast<int>(info.ssi_signo);
            if (signal == SIGCHLD) continue;
            if (result_ == 0) result_ = 128 + signal;
            // The first is passed on, so that the processes can end in their own way; the second is meant seriously.
            const bool again = std::exchange(interrupted_, true);
            for (const auto& child : children_) signal_child(child, again ? SIGKILL : signal);
            if (!ending_) ending_since_ = base::now_ns();
            ending_ = true;
        }
        for (auto& child : children_) {
            if (child.running && ::waitpid(child.pid, &child.status, WNOHANG) == child.pid) ended(child);
        }
    }

    void ended(Child& child) {
        child.running = false;
        ::kill(-child.pid, SIGTERM);  // whatever it has left behind
        if (WIFEXITED(child.status) && WEXITSTATUS(child.status) == 0) return;
        if (ending_) return;
        const auto where = child.host.empty() ? std::string() : " on host " + child.host;
        std::string how;
        if (WIFSIGNALED(child.status)) {
            const int signal = WTERMSIG(child.status);
            how = fmt::format("died of signal {} ({})", signal, ::strsignal(signal));
            result_ = 128 + signal;
        } else {
            how = fmt::format("ended with exit status {}", WEXITSTATUS(child.status));
            result_ = WEXITSTATUS(child.status);
        }
        fmt::print(stderr, "railmux run: rank {}{} {}; ending the job\n", child.rank, where, how);
        end_job();
    }

    void end_job() {
        ending_ = true;
        ending_since_ = base::now_ns();
        for (const auto& child : children_) signal_child(child, SIGTERM);
    }

    void check_time() {
        const auto now = base::now_ns();
        if (!ending_ && options_.timeout.count() > 0 && now - started_ > options_.timeout.count() * base::second) {
            fmt::print(stderr, "railmux run: not over after {} s; ending the job\n", options_.timeout.count());
            result_ = 124;  // as timeout(1)
            end_job();
        }
        if (ending_ && now - ending_since_ > grace) {
            for (auto& child : children_) signal_child(child, SIGKILL);
            ending_since_ = now;
        }
    }

    RunOptions options_;
    base::Logger log_{base::LogLevel::warning, "railmux run: "};
    std::string id_ = random_text();
    std::string key_ = random_text();
    PrivateFolder folder_;
    Server server_;
    ValueStore values_;
    std::string place_;
    base::FileDescriptor signals_;
    sigset_t old_mask_{};
    std::vector<Child> children_;
    base::Nanoseconds started_ = base::now_ns();
    base::Nanoseconds ending_since_ = 0;
    bool ending_ = false;
    bool interrupted_ = false;
    int result_ = 0;
};

}  // namespace

int run_job(const RunOptions& options) { return Launcher(options).run(); }

}  // namespace railmux::bootstrap

#include "bootstrap/child.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <railmux/error.hpp>

#include "base/text.hpp"

namespace railmux::bootstrap {

namespace {

constexpr std::size_t longest_line = 64 * 1024;

struct Pipe {
    base::FileDescriptor read;
    base::FileDescriptor write;
};

Pipe make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        throw Error(ErrorCode::system, std::string("no pipe: ") + std::strerror(errno), "raise ulimit -n");
    }
    return {base::FileDescriptor(ends[0]), base::FileDescriptor(ends[1])};
}

void write_all(int to, std::string_view text) {
    while (!text.empty()) {
        const auto written = ::write(to, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;  // nobody reads any more
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

/// In the child: becomes the program, or writes errno to `failure`. Calls only what is safe after fork.
[[noreturn]] void become(char* const* command, char* const* environment, int in, int out, int err, int failure,
                         pid_t parent) {
    ::setpgid(0, 0);
    // When the launcher is killed without a chance to clean up, its processes must not stay behind.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() == parent) {
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::dup2(in, 0);
        ::dup2(out, 1);
        ::dup2(err, 2);
        ::execvpe(command[0], command, environment);
    }
    const int code = errno;
    [[maybe_unused]] const auto written = ::write(failure, &code, sizeof code);
    ::_exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (auto& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
}

std::vector<std::string> merged_environment(const std::vector<std::string>& added) {
    std::vector<std::string> all = added;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const auto name = text.substr(0, text.find('=') + 1);
        bool replaced = false;
        for (const auto& other : added) replaced = replaced || other.starts_with(name);
        if (!replaced) all.emplace_back(text);
    }
    return all;
}

}  // namespace

void OutputStream::forward() {
    std::array<char, 16 * 1024> buffer;
    const auto got = ::read(from_.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got > 0) pending_.append(buffer.data(), static_cast<std::size_t>(got));
    write_lines(got <= 0);
    if (got <= 0) from_.reset();
}

void OutputStream::write_lines(bool all) {
    std::string text;
    std::size_t at = 0;
    while (at < pending_.size()) {
        const auto end = pending_.find('\n', at);
        if (end == std::string::npos && !all && pending_.size() - at < longest_line) break;
        const auto stop = end == std::string::npos ? pending_.size() : end;
        text += prefix_;
        text.append(pending_, at, stop - at);
        text += '\n';
        at = end == std::string::npos ? stop : stop + 1;
    }
    pending_.erase(0, at);
    write_all(to_, text);
}

void start(Child& child, const ChildPlan& plan, bool prefix) {
    auto out = make_pipe();
    auto err = make_pipe();
    auto in = make_pipe();
    auto failure = make_pipe();
    auto command = plan.command;
    auto environment = merged_environment(plan.environment);
    const auto command_pointers = pointers(command);
    const auto environment_pointers = pointers(environment);
    const pid_t parent = ::getpid();
    child.pid = ::fork();
    if (child.pid == 0) {
        become(command_pointers.data(), environment_pointers.data(), in.read.get(), out.write.get(), err.write.get(),
               failure.write.get(), parent);
    }
    if (child.pid < 0)
        throw Error(ErrorCode::system, std::string("no process: ") + std::strerror(errno), "see ulimit -u");
    failure.write.reset();
    int code = 0;
    if (::read(failure.read.get(), &code, sizeof code) == sizeof code) {
        ::waitpid(child.pid, nullptr, 0);
        throw Error(ErrorCode::system, fmt::format("cannot execute {}: {}", command[0], std::strerror(code)),
                    "check the name and that it may be executed");
    }
    child.running = true;
    write_all(in.write.get(), plan.input);
    const auto mark = prefix ? fmt::format("[{}] ", child.rank) : std::string();
    child.out = OutputStream(std::move(out.read), 1, mark);
    child.err = OutputStream(std::move(err.read), 2, mark);
}

void signal_child(const Child& child, int signal) noexcept {
    if (child.running) ::kill(-child.pid, signal);
}

std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : std::string();
    const char* path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): the launcher has one thread
    for (const auto folder : base::split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
        auto full = std::string(folder) + "/" + name;
        if (::access(full.c_str(), X_OK) == 0) return full;
    }
    return {};
}

}  // namespace railmux::bootstrap

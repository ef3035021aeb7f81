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
#include <string_view>

#include <railmux/error.hpp>

namespace railmux::bootstrap {

namespace {

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

struct Start {
    char* const* command;
    char* const* environment;
    int in, out, err;
    int failure;  // takes errno when the program cannot be executed
    pid_t parent;
};

/// In the child: becomes the program. Calls only what is safe after fork.
[[noreturn]] void become(const Start& how) {
    ::setpgid(0, 0);
    // When the launcher is killed without a chance to clean up, its processes must not stay behind.
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != how.parent) ::_exit(127);
    ::signal(SIGPIPE, SIG_DFL);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(how.in, 0);
    ::dup2(how.out, 1);
    ::dup2(how.err, 2);
    ::execvpe(how.command[0], how.command, how.environment);
    const int code = errno;
    [[maybe_unused]] const auto written = ::write(how.failure, &code, sizeof code);
    ::_exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> all;
    all.reserve(texts.size() + 1);
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

pid_t fork_into(Start how) {
    how.parent = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) become(how);
    if (pid < 0) throw Error(ErrorCode::system, std::string("no process: ") + std::strerror(errno), "see ulimit -u");
    ::setpgid(pid, pid);  // in both, so that it holds whichever runs first
    return pid;
}

void write_line(base::FileDescriptor& to, std::string_view text) noexcept {
    [[maybe_unused]] const auto written = ::write(to.get(), text.data(), text.size());  // a full pipe has had enough
}

}  // namespace

void start(Child& child, const ChildPlan& plan, const std::string& prefix) {
    auto out = make_pipe();
    auto err = make_pipe();
    auto failure = make_pipe();
    Pipe in;
    if (plan.by_launch_command) {
        in = make_pipe();
        ::fcntl(in.write.get(), F_SETFL, O_NONBLOCK);
    } else {
        in.read.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    auto command = plan.command;
    auto environment = merged_environment(plan.environment);
    child.pid = fork_into({.command = pointers(command).data(),
                           .environment = pointers(environment).data(),
                           .in = in.read.get(),
                           .out = out.write.get(),
                           .err = err.write.get(),
                           .failure = failure.write.get()});
    failure.write.reset();
    int code = 0;
    if (::read(failure.read.get(), &code, sizeof code) == sizeof code) {
        ::waitpid(child.pid, nullptr, 0);
        child.pid = -1;
        throw Error(ErrorCode::system, fmt::format("cannot execute {}: {}", command[0], std::strerror(code)),
                    "check the name and that it may be executed");
    }
    child.running = true;
    child.control = std::move(in.write);
    if (child.control.valid()) write_line(child.control, plan.input);
    child.out = OutputStream(std::move(out.read), 1, prefix);
    child.err = OutputStream(std::move(err.read), 2, prefix);
}

void signal_child(Child& child, int signal) noexcept {
    if (!child.running) return;
    if (!child.control.valid()) {
        ::kill(-child.pid, signal);
        return;
    }
    if (const char* name = ::sigabbrev_np(signal)) write_line(child.control, std::string(name) + "\n");
    // After the last word the launch command itself is no longer spared, should this be repeated.
    if (signal == SIGKILL) child.control.reset();
}

bool take_end(Child& child) noexcept {
    if (!child.running) return false;
    siginfo_t info{};
    const auto id = static_cast<id_t>(child.pid);
    if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != child.pid) return false;
    child.running = false;
    child.killed = info.si_code != CLD_EXITED;
    child.status = info.si_status;
    ::kill(-child.pid, SIGTERM);
    if (child.control.valid()) write_line(child.control, "END\n");
    child.control.reset();
    return true;
}

void bury(Child& child) noexcept {
    if (child.pid <= 0) return;
    ::kill(-child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
    child.running = false;
    child.pid = -1;
}

std::string describe_end(const Child& child) {
    if (!child.killed) return fmt::format("ended with exit status {}", child.status);
    const char* name = ::sigdescr_np(child.status);
    return fmt::format("died of signal {} ({})", child.status, name == nullptr ? "unknown" : name);
}

int exit_status(const Child& child) noexcept { return child.killed ? 128 + child.status : child.status; }

}  // namespace railmux::bootstrap

#include "bootstrap/guard.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include <railmux/error.hpp>

namespace railmux::bootstrap {

namespace {

// On the line come groups to watch; negative: to forget.
constexpr pid_t dismissed = 0;
constexpr int grace_ms = 3000;
constexpr int step_ms = 50;

void end_all(const std::vector<pid_t>& groups) {
    for (const auto group : groups) ::kill(-group, SIGTERM);
    const auto lives = [](pid_t group) { return ::kill(-group, 0) == 0; };
    for (int waited = 0; waited < grace_ms && std::any_of(groups.begin(), groups.end(), lives); waited += step_ms) {
        ::poll(nullptr, 0, step_ms);
    }
    for (const auto group : groups) ::kill(-group, SIGKILL);
}

[[noreturn]] void keep_guard(int line, const std::function<void()>& clean_up) {
    ::setpgid(0, 0);  // a terminal's signals are for the launcher
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(signal, SIG_IGN);
    // Whoever reads our output, or whatever else the launcher had open, must see its end without waiting for us.
    const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int descriptor : {0, 1, 2}) ::dup2(nothing, descriptor);
    ::dup2(line, 3);
    ::close_range(4, ~0U, 0);
    line = 3;
    std::vector<pid_t> groups;
    pid_t group = 0;
    while (true) {
        const auto got = ::read(line, &group, sizeof group);
        if (got < 0 && errno == EINTR) continue;
        if (got == sizeof group && group == dismissed) ::_exit(0);
        if (got != sizeof group) break;
        if (group > 0) {
            groups.push_back(group);
        } else {
            std::erase(groups, -group);
        }
    }
    end_all(groups);
    clean_up();
    ::_exit(0);
}

}  // namespace

Guard::Guard(const std::function<void()>& clean_up) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
        throw Error(ErrorCode::system, std::string("no socket pair: ") + std::strerror(errno), "raise ulimit -n");
    }
    base::FileDescriptor read(ends[0]);
    line_.reset(ends[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
        line_.reset();
        keep_guard(read.get(), clean_up);
    }
    if (pid_ < 0) throw Error(ErrorCode::system, std::string("no process: ") + std::strerror(errno), "see ulimit -u");
}

void Guard::tell(pid_t word) noexcept {
    ::send(line_.get(), &word, sizeof word, MSG_NOSIGNAL);  // a guard that somebody killed is not missed
}

Guard::~Guard() {
    tell(dismissed);
    line_.reset();
    ::waitpid(pid_, nullptr, 0);
}

}  // namespace railmux::bootstrap

#include "bootstrap/signals.hpp"

#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include <railmux/error.hpp>

namespace railmux::bootstrap {

namespace {
bool ignored(int signal) {
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}
}  // namespace

Signals::Signals() {
    sigset_t mask;
    ::sigemptyset(&mask);
    ::sigaddset(&mask, SIGCHLD);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        if (!ignored(signal)) ::sigaddset(&mask, signal);
    }
    fd_.reset(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd_.valid()) {
        throw Error(ErrorCode::system, std::string("no signalfd: ") + std::strerror(errno), "raise ulimit -n");
    }
    struct sigaction action {};
    action.sa_handler = SIG_DFL;  // if it were ignored, nobody would tell us how children ended
    ::sigaction(SIGCHLD, &action, &old_child_);
    action.sa_handler = SIG_IGN;  // a pipe that nobody reads shows as an error of write
    ::sigaction(SIGPIPE, &action, &old_pipe_);
    ::sigprocmask(SIG_BLOCK, &mask, &old_mask_);
}

Signals::~Signals() {
    ::sigaction(SIGCHLD, &old_child_, nullptr);
    ::sigaction(SIGPIPE, &old_pipe_, nullptr);
    ::sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
}

std::optional<int> Signals::next() noexcept {
    signalfd_siginfo info{};
    if (::read(fd_.get(), &info, sizeof info) != sizeof info) return std::nullopt;
    return static_cast<int>(info.ssi_signo);
}

}  // namespace railmux::bootstrap

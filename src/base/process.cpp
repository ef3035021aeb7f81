#include "base/process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace railmux::base {

namespace {

/// Somebody else's that may not be sent signals is there as well.
bool has_owner(pid_t number) noexcept { return ::kill(number, 0) == 0 || errno != ESRCH; }

/// Whether pidfd_open failed since there is no such process: newer kernels tell a thread's number by ENOENT.
bool no_process(int error) noexcept { return error == ESRCH || error == EINVAL || error == ENOENT; }

}  // namespace

Process::Process(pid_t number) noexcept : number_(number) {
    if (number <= 0) return;  // kill would ask for groups
    process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, number, 0)));
    if (!process_.valid()) {
        by_number_ = !no_process(errno) && has_owner(number);
    } else if (!alive()) {
        process_.reset();
    }
}

bool Process::alive() const noexcept {
    if (by_number_) return has_owner(number_);
    if (!process_.valid()) return true;
    pollfd entry{.fd = process_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) != 1;  // a signal that comes just now says nothing
}

}  // namespace railmux::base

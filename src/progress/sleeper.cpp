#include "progress/sleeper.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <railmux/error.hpp>

namespace railmux::progress {

Sleeper::Sleeper() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (epoll_ < 0 || wake_ < 0) {
        throw Error(ErrorCode::system, std::string("no descriptor to wait on: ") + std::strerror(errno),
                    "raise the limit of open files (ulimit -n)");
    }
    watch(wake_);
}

Sleeper::~Sleeper() {
    ::close(epoll_);
    ::close(wake_);
}

void Sleeper::watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);  // EEXIST: it is watched already
}

void Sleeper::sleep(base::Nanoseconds limit) {
    limit = std::max<base::Nanoseconds>(limit, 0);
    const timespec timeout{.tv_sec = limit / base::second, .tv_nsec = limit % base::second};
    epoll_event event{};
    const auto count = ::epoll_pwait2(epoll_, &event, 1, &timeout, nullptr);
    if (count > 0 && event.data.fd == wake_) {
        std::uint64_t signals = 0;
        [[maybe_unused]] const auto read = ::read(wake_, &signals, sizeof signals);
    }
}

void Sleeper::wake() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
}

}  // namespace railmux::progress

#include "progress/sleeper.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include <railmux/error.hpp>

namespace railmux::progress {

namespace {
base::FileDescriptor checked(int descriptor) {
    if (descriptor >= 0) return base::FileDescriptor(descriptor);
    throw Error(ErrorCode::system, std::string("no descriptor to wait on: ") + std::strerror(errno),
                "raise the limit of open files (ulimit -n)");
}

timespec to_timespec(base::Nanoseconds time) noexcept {
    return {.tv_sec = time / base::second, .tv_nsec = time % base::second};
}

/// Kernels before 5.11 do not know epoll_pwait2, and filters of system calls that are as old refuse it: without a sleep whoever
/// waits would take all of a core. Never less than `limit`: who comes back early would sleep again and again.
int wait(int epoll, epoll_event& event, base::Nanoseconds limit) noexcept {
    static std::atomic<bool> without{false};  // as it is for all of the process
    if (!without.load(std::memory_order_relaxed)) {
        const auto timeout = to_timespec(limit);
        const int count = ::epoll_pwait2(epoll, &event, 1, &timeout, nullptr);
        if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
        without.store(true, std::memory_order_relaxed);
    }
    constexpr base::Nanoseconds longest = std::numeric_limits<int>::max();
    const auto milliseconds = limit / base::millisecond + (limit % base::millisecond > 0 ? 1 : 0);
    return ::epoll_wait(epoll, &event, 1, static_cast<int>(std::min(milliseconds, longest)));
}

bool holds(const std::vector<int>& all, int descriptor) {
    return std::find(all.begin(), all.end(), descriptor) != all.end();
}
}  // namespace

Sleeper::Sleeper()
    : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC))), wake_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = wake_.get();
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
}

void Sleeper::watch(int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);  // EEXIST: it is watched already
    if (!holds(watched_, fd)) watched_.push_back(fd);
}

void Sleeper::keep(int fd) {
    if (holds(kept_, fd)) return;
    watch(fd);
    kept_.push_back(fd);
}

void Sleeper::forget(int fd) {
    if (std::erase(watched_, fd) == 0) return;
    std::erase(kept_, fd);
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);  // ENOENT, EBADF: it was closed
}

void Sleeper::forget_all() {
    while (!watched_.empty()) forget(watched_.back());
}

bool Sleeper::sleep(base::Nanoseconds limit) {
    epoll_event event{};
    const auto count = wait(epoll_.get(), event, std::max<base::Nanoseconds>(limit, 0));
    if (count > 0 && event.data.fd == wake_.get()) {
        std::uint64_t signals = 0;
        [[maybe_unused]] const auto read = ::read(wake_.get(), &signals, sizeof signals);
        return false;
    }
    return count > 0;
}

void Sleeper::wake() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void Sleeper::expire_in(base::Nanoseconds limit) {
    if (limit >= forever && !timer_set_) return;
    if (!timer_.valid()) {
        timer_ = checked(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
        watch(timer_.get());
        std::erase(watched_, timer_.get());  // it is ours
    }
    timer_set_ = limit < forever;
    itimerspec when{};  // all zero: none; whatever had expired counts no more
    if (timer_set_) when.it_value = to_timespec(std::max<base::Nanoseconds>(limit, 1));
    ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

void Sleeper::clear() noexcept {
    std::uint64_t signals = 0;
    [[maybe_unused]] const auto read = ::read(wake_.get(), &signals, sizeof signals);
    if (timer_set_) {
        timer_set_ = false;
        const itimerspec none{};
        ::timerfd_settime(timer_.get(), 0, &none, nullptr);
    }
}

}  // namespace railmux::progress

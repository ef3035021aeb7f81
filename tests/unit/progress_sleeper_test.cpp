// Sleeper: what ends a sleep, and what makes its descriptor readable.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <thread>

#include "progress/sleeper.hpp"

using railmux::base::FileDescriptor;
using railmux::base::microsecond;
using railmux::base::millisecond;
using railmux::base::now_ns;
using railmux::base::second;
using railmux::progress::Sleeper;

namespace {

struct Pipe {
    FileDescriptor out;
    FileDescriptor in;
    Pipe() {
        std::array<int, 2> ends{};
        REQUIRE(::pipe(ends.data()) == 0);
        out.reset(ends[0]);
        in.reset(ends[1]);
    }
    void put() const { REQUIRE(::write(in.get(), "x", 1) == 1); }
    void take() const {
        char byte = 0;
        REQUIRE(::read(out.get(), &byte, 1) == 1);
    }
};

bool readable(const Sleeper& sleeper, int milliseconds = 0) {
    pollfd entry{.fd = sleeper.descriptor(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, milliseconds) == 1;
}

bool sleeps_through(Sleeper& sleeper, railmux::base::Nanoseconds limit) {
    const auto begun = now_ns();
    sleeper.sleep(limit);
    return now_ns() - begun >= limit;
}

}  // namespace

TEST_CASE("sleeper: wakes for what it watches, for a call, and when the time is over", "[progress]") {
    Sleeper sleeper;
    const Pipe pipe;
    sleeper.watch(pipe.out.get());
    CHECK(sleeps_through(sleeper, millisecond));
    pipe.put();
    CHECK_FALSE(sleeps_through(sleeper, 10 * second));
    pipe.take();
    sleeper.wake();
    sleeper.wake();
    CHECK_FALSE(sleeps_through(sleeper, 10 * second));
    CHECK(sleeps_through(sleeper, millisecond));  // one sleep for all calls before it
    std::thread other([&] { sleeper.wake(); });
    sleeper.sleep(10 * second);
    other.join();
}

TEST_CASE("sleeper: its descriptor is readable when it would wake", "[progress]") {
    Sleeper sleeper;
    const Pipe pipe;
    sleeper.keep(pipe.out.get());
    sleeper.keep(pipe.out.get());
    CHECK_FALSE(readable(sleeper));
    pipe.put();
    CHECK(readable(sleeper));
    pipe.take();
    sleeper.wake();
    CHECK(readable(sleeper));
    sleeper.clear();
    CHECK_FALSE(readable(sleeper));
    sleeper.expire_in(millisecond);
    CHECK(readable(sleeper, 10'000));
    sleeper.clear();
    CHECK_FALSE(readable(sleeper));
    sleeper.expire_in(Sleeper::forever);
    CHECK_FALSE(readable(sleeper, 2));
    sleeper.expire_in(0);  // at once, and not never
    CHECK(readable(sleeper, 10'000));
}

TEST_CASE("sleeper: what it forgets wakes nobody, and may be watched again", "[progress]") {
    Sleeper sleeper;
    const Pipe pipe;
    const Pipe other;
    sleeper.keep(pipe.out.get());
    sleeper.watch(other.out.get());
    pipe.put();
    other.put();
    sleeper.forget(pipe.out.get());
    CHECK(readable(sleeper));
    sleeper.forget_all();
    CHECK_FALSE(readable(sleeper));
    sleeper.keep(pipe.out.get());
    CHECK(readable(sleeper));
    sleeper.forget_all();
    sleeper.wake();
    CHECK(readable(sleeper));  // its own it keeps
}

TEST_CASE("sleeper: a number that was closed and came again is watched anew", "[progress]") {
    Sleeper sleeper;
    auto first = std::make_unique<Pipe>();
    const int number = first->out.get();
    sleeper.watch(number);
    first.reset();
    const Pipe second_pipe;
    if (second_pipe.out.get() != number) return;  // another thread of the test program took it
    sleeper.watch(number);
    second_pipe.put();
    CHECK(readable(sleeper));
}

namespace {

/// From here on the kernel refuses this process epoll_pwait2, as one that does not know it, or a container's filter.
bool refuse_epoll_pwait2(int error) {
    std::array program{sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))),
                       sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1)),
                       sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error))),
                       sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW))};
    const sock_fprog filter{.len = static_cast<unsigned short>(program.size()), .filter = program.data()};
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

enum Found : int { as_ever, no_filter, too_short, too_long, not_woken };

/// What sleeps are like in a process that has no epoll_pwait2.
Found sleeps_without(int error) noexcept {
    ::alarm(60);  // what sleeps for good ends so
    if (!refuse_epoll_pwait2(error)) return no_filter;
    epoll_event event{};
    if (::epoll_pwait2(-1, &event, 1, nullptr, nullptr) == 0 || errno != error) return no_filter;
    Sleeper sleeper;
    constexpr auto limit = 50 * millisecond;
    for (int i = 0; i < 3; ++i) {
        const auto begun = now_ns();
        if (sleeper.sleep(limit)) return not_woken;
        if (now_ns() - begun < limit) return too_short;
    }
    sleeper.wake();
    const auto begun = now_ns();
    if (sleeper.sleep(Sleeper::forever) || now_ns() - begun > 10 * second) return too_long;
    const Pipe pipe;
    sleeper.watch(pipe.out.get());
    pipe.put();
    return sleeper.sleep(Sleeper::forever) ? as_ever : not_woken;
}

}  // namespace

TEST_CASE("sleeper: sleeps as ever where there is no epoll_pwait2", "[progress]") {
    const int error = GENERATE(ENOSYS, EPERM);
    const auto child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) ::_exit(sleeps_without(error));
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    const auto found = static_cast<Found>(WEXITSTATUS(status));
    if (found == no_filter) {
        WARN("no filter can be set here");
        return;
    }
    CHECK(found == as_ever);
}

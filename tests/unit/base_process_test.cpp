// Other processes: alive, ended, never seen.
#include "base/process.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <utility>

using railmux::base::Process;

namespace {

/// A child that waits to be killed.
class Child {
public:
    Child() : number_(::fork()) {
        if (number_ == 0) {
            while (true) ::pause();
        }
        REQUIRE(number_ > 0);
    }
    ~Child() {
        if (!reaped_) reap();
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    [[nodiscard]] pid_t number() const { return number_; }
    /// It has ended then, but nobody has waited for it.
    void kill() const {
        ::kill(number_, SIGKILL);
        siginfo_t info{};
        ::waitid(P_PID, static_cast<id_t>(number_), &info, WEXITED | WNOWAIT);
    }
    void reap() {
        ::kill(number_, SIGKILL);
        ::waitpid(number_, nullptr, 0);
        reaped_ = true;
    }

private:
    pid_t number_;
    bool reaped_ = false;
};

}  // namespace

TEST_CASE("a process lives until it has ended, waited for or not", "[base]") {
    Child child;
    Process process(child.number());
    CHECK(process.known());
    CHECK(process.alive());
    CHECK(process.number() == child.number());
    child.kill();
    CHECK_FALSE(process.alive());
    if (process.descriptor() >= 0) {
        pollfd entry{.fd = process.descriptor(), .events = POLLIN, .revents = 0};
        CHECK(::poll(&entry, 1, 0) == 1);
    }
    child.reap();
    CHECK_FALSE(process.alive());
    const Process moved = std::move(process);
    CHECK_FALSE(moved.alive());
}

TEST_CASE("of who was not seen alive nothing is known", "[base]") {
    const auto unknown = [](const Process& process) {
        return !process.known() && process.alive() && process.descriptor() < 0;
    };
    CHECK(unknown(Process()));
    CHECK(unknown(Process(0)));
    CHECK(unknown(Process(-1)));          // as a number of kill: everybody
    CHECK(unknown(Process(0x7fffffff)));  // beyond what any kernel gives out
    Child child;
    child.kill();
    CHECK(unknown(Process(child.number())));
    child.reap();
    CHECK(unknown(Process(child.number())));
}

TEST_CASE("without a descriptor left a process is known by its number", "[base]") {
    Child child;
    rlimit limit{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
    auto none = limit;
    none.rlim_cur = 0;
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    const Process process(child.number());
    const Process nobody(0x7fffffff);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK(process.descriptor() < 0);
    CHECK(process.known());
    CHECK(process.alive());
    CHECK_FALSE(nobody.known());
    child.reap();
    CHECK_FALSE(process.alive());
}

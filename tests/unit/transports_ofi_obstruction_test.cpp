// What stands in the way of completions that come in order, and which processes have died.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include <catch2/catch.hpp>

#include "transports/ofi/obstruction.hpp"
#include "transports/ofi/processes.hpp"

using namespace railmux;
using base::LookedTime;
using transports::ofi::Obstruction;
using transports::ofi::Processes;
using transports::ofi::ProcessName;

namespace {

constexpr base::Nanoseconds ms = base::millisecond;

/// Looks each millisecond, up to so many times, for as long as it does not stand: how often it did.
int looks(Obstruction& obstruction, std::optional<std::uint64_t> oldest, bool abandoned, base::Nanoseconds& now,
          int most) {
    for (int i = 1; i <= most; ++i) {
        if (obstruction.stands(oldest, abandoned, now += ms)) return i;
    }
    return most + 1;
}

}  // namespace

TEST_CASE("an obstruction is what goes nowhere and is not taken for a tenth of a second", "[transports]") {
    Obstruction obstruction;
    base::Nanoseconds now = base::second;
    CHECK_FALSE(obstruction.suspected());
    obstruction.suspect();
    CHECK(obstruction.suspected());
    const auto needed = looks(obstruction, 7, true, now, 1000);
    CHECK(needed > 100);
    CHECK(needed < 110);
}

TEST_CASE("who has a link may be as slow as it likes", "[transports]") {
    Obstruction obstruction;
    base::Nanoseconds now = base::second;
    obstruction.suspect();
    CHECK(looks(obstruction, 7, false, now, 1000) == 1001);
    CHECK(obstruction.suspected());  // what goes nowhere may stand behind it
    CHECK(looks(obstruction, 8, true, now, 1000) < 110);
}

TEST_CASE("an obstruction is one and the same message all the time", "[transports]") {
    Obstruction obstruction;
    base::Nanoseconds now = base::second;
    obstruction.suspect();
    for (std::uint64_t number = 1; number < 10; ++number) CHECK(looks(obstruction, number, true, now, 90) == 91);
    CHECK(looks(obstruction, std::nullopt, true, now, 1) == 2);
    CHECK_FALSE(obstruction.suspected());  // all has been taken
}

TEST_CASE("only time in which one looks counts", "[transports]") {
    Obstruction obstruction;
    base::Nanoseconds now = base::second;
    obstruction.suspect();
    CHECK_FALSE(obstruction.stands(7, true, now));
    CHECK_FALSE(obstruction.stands(7, true, now += 60 * base::second));  // it was stopped, or computed
    CHECK_FALSE(obstruction.stands(7, true, now += 60 * base::second));

    LookedTime looked;
    CHECK(looked.look(now) == 0);
    CHECK(looked.look(now + ms) == ms);
    CHECK(looked.look(now + base::second) == 10 * ms);
    looked.end();
    CHECK(looked.look(now + 2 * base::second) == 0);
}

TEST_CASE("only a process that was seen alive can have died", "[transports]") {
    Processes processes;
    const auto name = [](pid_t number, std::uint64_t owner) {
        return ProcessName{.number = static_cast<std::uint32_t>(number), .owner = owner};
    };
    CHECK_FALSE(processes.died({}));
    CHECK_FALSE(processes.died(name(::getpid(), 1)));
    const auto start = [] {
        const auto child = ::fork();
        if (child == 0) ::pause(), ::_exit(0);
        REQUIRE(child > 0);
        return child;
    };
    const auto end = [](pid_t child) {
        REQUIRE(::kill(child, SIGKILL) == 0);
        REQUIRE(::waitpid(child, nullptr, 0) == child);
    };
    const auto seen = start();
    CHECK_FALSE(processes.died(name(seen, 2)));
    end(seen);
    CHECK(processes.died(name(seen, 2)));
    CHECK(processes.died(name(::getpid(), 2)));        // whoever has its number by now
    CHECK_FALSE(processes.died(name(::getpid(), 3)));  // and is somebody else
    const auto unseen = start();
    end(unseen);
    CHECK_FALSE(processes.died(name(unseen, 4)));  // perhaps the number is of another namespace
}

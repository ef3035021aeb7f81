// Interfaces that come while a context begins, in a network of this test's own.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transports/tcp/transport.hpp"

using namespace railmux;
using namespace railmux::transports;

namespace {

enum Outcome : int { told = 0, not_told = 1, failed = 2, no_network = 3 };

bool runs(const char* command) { return std::system(command) == 0; }  // NOLINT(concurrency-mt-unsafe)

constexpr const char* make_interface =
    "{ ip link add rmx0 type veth peer name rmx1 && ip link set rmx1 up && ip link set rmx0 up &&"
    " ip addr add 10.9.8.7/24 dev rmx0; } >/dev/null 2>&1";

/// Whether a rail that is opened after `meanwhile` tells of other devices, of its own accord.
Outcome listens_after(const std::function<bool()>& before, const std::function<bool()>& meanwhile) {
    const auto user = ::geteuid() == 0 ? 0 : CLONE_NEWUSER;
    if (::unshare(CLONE_NEWNET | user) != 0 || !runs("ip link set lo up 2>/dev/null") || !before()) return no_network;
    base::Logger log(base::LogLevel::off);
    Config config;
    config.set("tcp.families", "ipv4");
    const auto transport = tcp::make_transport({config, log});
    const auto devices = transport->scan();
    const auto found = std::ranges::find(devices, "lo", &RailInfo::device);
    if (found == devices.end() || !found->usable) return failed;
    if (!meanwhile()) return no_network;
    const auto rail = transport->open(*found);
    std::array<Event, 16> events;
    bool any = false;
    for (int i = 0; i < 100; ++i) {
        const auto count = rail->poll(events);
        any = any || std::ranges::any_of(std::span(events).first(count),
                                         [](const Event& e) { return e.kind == EventKind::devices_changed; });
    }
    return any ? told : not_told;
}

/// In a process of its own, whose network goes with it.
Outcome apart(const std::function<bool()>& before, const std::function<bool()>& meanwhile) {
    const auto pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        try {
            ::_exit(listens_after(before, meanwhile));
        } catch (const std::exception&) {
            ::_exit(failed);
        }
    }
    int status = 0;
    REQUIRE(::waitpid(pid, &status, 0) == pid);
    REQUIRE(WIFEXITED(status));
    return static_cast<Outcome>(WEXITSTATUS(status));
}

bool nothing() { return true; }
bool an_interface() { return runs(make_interface); }

}  // namespace

TEST_CASE("tcp: an interface that comes between the scan and the first rail is told of", "[tcp]") {
    const auto outcome = apart(nothing, an_interface);
    if (outcome == no_network) {
        WARN("SKIPPED: no network namespace with interfaces of its own can be made here");
        return;
    }
    CHECK(outcome == told);
    CHECK(apart(an_interface, nothing) == not_told);
    CHECK(apart(nothing, nothing) == not_told);
}

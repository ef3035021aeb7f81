// Two contexts in one process, talking over real sockets of the loopback interface, or over whatever config says.
//
// Threads: one; what waits on one side progresses both.
// Lifetime: the contexts live as long as the pair.
#pragma once

#include <catch2/catch.hpp>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <railmux/context.hpp>

#include "pattern.hpp"

namespace railmux::test {

/// Rails that tests are to use instead of `usual`: RAILMUX_TEST_RAILS, for the machines of tests/vm.
inline std::string rails_for_tests(const char* usual) {
    const char* const wanted = std::getenv("RAILMUX_TEST_RAILS");
    return wanted == nullptr ? usual : wanted;
}

/// With RAILMUX_TEST_PROVIDERS those of libfabric that are off by default, for tests/net/ofi_test.sh.
inline std::string providers_for_tests() {
    const char* const wanted = std::getenv("RAILMUX_TEST_PROVIDERS");
    return wanted == nullptr ? "all" : wanted;
}

/// Two rails over loopback, which behave like two networks: frames on them overtake each other.
inline Config two_rails() {
    Config config;
    config.set("tcp.interfaces", "127.0.1.1,127.0.1.2").set("rails", rails_for_tests("tcp:*"));
    config.set("ofi.providers", providers_for_tests());
    config.set("policy", "round_robin");
    config.set("progress", "poll").set("close.timeout", "500ms");
    return config;
}

/// The same with this way of making progress, and thread level.
inline Config with_mode(std::string_view mode, std::string_view level = "single") {
    auto config = two_rails();
    config.set("progress", mode).set("thread_level", level);
    return config;
}

struct Pair {
    std::optional<Context> a_;
    std::optional<Context> b_;
    Context& a;
    Context& b;
    Peer to_b;
    Peer to_a;

    explicit Pair(const Config& config = two_rails())
        : a_(std::in_place, config), b_(std::in_place, config), a(*a_), b(*b_) {
        to_b = a.add_peer(b.address());
        to_a = b.add_peer(a.address());
    }
    ~Pair() {  // each waits for the other's goodbye
        std::thread other([this] { a_.reset(); });
        b_.reset();
        other.join();
    }

    /// Progresses both sides until it holds; fails the test after `limit`.
    template <typename Holds>
    void until(Holds holds, std::chrono::seconds limit = std::chrono::seconds(30)) {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (!holds()) {
            a.progress();
            b.progress();
            if (std::chrono::steady_clock::now() > end) FAIL("not within " << limit.count() << " s");
        }
    }
    Status finish(Context& side, Request& request) {
        std::optional<Status> status;
        until([&] { return (status = side.test(request)).has_value(); });
        return *status;
    }
};

}  // namespace railmux::test

// Progress: an application's own loop, the helper thread, and what sleeping costs.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "engine/pair.hpp"
#include "repeats.hpp"

using namespace railmux;
using test::Pair;
using test::pattern;
using test::two_rails;
using test::with_mode;

namespace {

using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

bool readable(int descriptor, std::chrono::milliseconds limit) {
    pollfd entry{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, static_cast<int>(limit.count())) == 1;
}

/// The loop that docs/progress.md shows. False: nothing woke it for ten seconds, and it was not over.
template <typename Over>
[[nodiscard]] bool sleep_in_loop(Context& context, Over over, std::uint64_t* sleeps = nullptr) {
    const int descriptor = context.event_fd();
    if (over()) return true;
    for (;;) {
        while (!context.arm()) {
            if (over()) return true;
        }
        // What is asked of the context now might undo arm(), and nobody would sleep.
        if (sleeps != nullptr) ++*sleeps;
        if (!readable(descriptor, 10s)) return false;
    }
}

/// What this thread has slept so far, and how long it has run.
struct Usage {
    long switches;
    std::chrono::microseconds cpu;
};
Usage usage_of(int who) {
    rusage usage{};
    ::getrusage(who, &usage);
    const auto micros = [](const timeval& t) {
        return std::chrono::seconds(t.tv_sec) + std::chrono::microseconds(t.tv_usec);
    };
    return {usage.ru_nvcsw, micros(usage.ru_utime) + micros(usage.ru_stime)};
}

}  // namespace

TEST_CASE("threads: an application's own loop sleeps between messages and misses none", "[engine]") {
    auto config = two_rails();
    config.set("progress", GENERATE("poll", "block", "thread"));
    Pair pair(config);
    constexpr int rounds = 200;
    std::thread other([&] {
        std::vector<std::byte> got(40'000);
        for (int i = 0; i < rounds; ++i) {
            const auto status = pair.b.recv(pair.to_a, 1, got);
            pair.b.send(pair.to_a, 2, std::span(got).first(status.bytes));
        }
    });
    std::uint64_t sleeps = 0;
    for (int i = 0; i < rounds; ++i) {
        const auto data = pattern(i % 10 == 9 ? 40'000 : 8, static_cast<unsigned>(i));
        std::vector<std::byte> got(data.size());
        auto receive = pair.a.irecv(pair.to_b, 2, got);
        auto send = pair.a.isend(pair.to_b, 1, data);
        const bool woken = sleep_in_loop(
            pair.a,
            [&] {
                if (send.active()) static_cast<void>(pair.a.test(send));
                if (receive.active()) static_cast<void>(pair.a.test(receive));
                return !send.active() && !receive.active();
            },
            &sleeps);
        REQUIRE(woken);
        CHECK(test::same(got, data));
    }
    other.join();
    CHECK(sleeps > 0);
}

TEST_CASE("threads: the descriptor turns readable for time limits", "[engine]") {
    auto config = two_rails();
    config.set("log", "off").set("connect.patience", "100ms");
    const auto data = pattern(8);
    Context a(config);
    const auto gone = [&] { return Context(config).address(); }();
    const auto peer = a.add_peer(gone);
    auto send = a.isend(peer, 1, data);
    std::optional<Status> status;
    CHECK(sleep_in_loop(a, [&] { return (status = a.test(send)).has_value(); }));
    REQUIRE(status);
    CHECK(status->code == ErrorCode::unreachable);
}

TEST_CASE("threads: the descriptor turns readable for what other calls leave and end", "[engine]") {
    auto config = two_rails();
    config.set("thread_level", GENERATE("single", "multiple"));
    const auto data = pattern(8);
    Pair pair(config);
    const auto settle = [&] {
        const auto end = SteadyClock::now() + 10s;
        do {
            while (!pair.a.arm()) {
            }
        } while (readable(pair.a.event_fd(), 5ms) && SteadyClock::now() < end);
    };
    settle();
    CHECK_FALSE(readable(pair.a.event_fd(), 0ms));
    auto first = pair.a.isend(pair.to_b, 1, data);  // there is no link yet: one must be asked for
    CHECK(readable(pair.a.event_fd(), 0ms));
    std::vector<std::byte> got(8);
    auto receive = pair.b.irecv(pair.to_a, 1, got);
    CHECK(pair.finish(pair.b, receive).ok());
    settle();
    auto never = pair.a.irecv(pair.to_b, 7, got);
    settle();
    CHECK(pair.a.cancel(never));
    CHECK(readable(pair.a.event_fd(), 0ms));
    CHECK_FALSE(pair.a.arm());  // it has ended, and nobody has been told
    settle();
    const auto port = pair.a.listen("127.0.0.1:0");
    CHECK(readable(pair.a.event_fd(), 0ms));  // nobody has looked at the door yet
    settle();
    std::thread knocking([&] { static_cast<void>(pair.b.connect("127.0.0.1:" + std::to_string(port))); });
    CHECK(sleep_in_loop(pair.a, [&] { return pair.a.accept(0ns).has_value(); }));
    knocking.join();
}

TEST_CASE("threads: what another thread's wait ends is told to the loop", "[engine]") {
    Pair pair(with_mode("block", "multiple"));
    std::vector<std::byte> first(8);
    std::vector<std::byte> second(8);
    auto mine = pair.a.irecv(pair.to_b, 1, first);
    std::atomic<bool> over = false;
    std::thread waiter([&] {
        auto request = pair.a.irecv(pair.to_b, 2, second);
        pair.a.wait(request);
    });
    std::thread other([&] {
        pair.b.send(pair.to_a, 1, pattern(8, 1));
        pair.b.send(pair.to_a, 2, pattern(8, 2));
        while (!over) pair.b.progress();
    });
    CHECK(sleep_in_loop(pair.a, [&] { return pair.a.test(mine).has_value(); }));
    CHECK((first == pattern(8, 1)));
    waiter.join();
    over = true;
    other.join();
    CHECK((second == pattern(8, 2)));
}

TEST_CASE("threads: the helper moves things on while the application computes", "[engine]") {
    Pair pair(with_mode("thread"));
    const auto data = pattern(3'000'000);
    std::vector<std::byte> got(data.size());
    std::atomic<int> ended = 0;
    // A rendezvous, for which both sides have to look again and again. Nobody calls in.
    auto receive = pair.b.irecv(pair.to_a, 1, got, [&](const Status&) { ++ended; });
    auto send = pair.a.isend(pair.to_b, 1, data, [&](const Status&) { ++ended; });
    const auto end = SteadyClock::now() + 20s;
    while (ended < 2 && SteadyClock::now() < end) std::this_thread::yield();
    REQUIRE(ended == 2);
    CHECK(test::same(got, data));
    CHECK(pair.a.test(send)->ok());
    CHECK(pair.b.test(receive)->ok());
}

TEST_CASE("threads: callbacks and calls may take the same locks", "[engine]") {
    Pair pair(with_mode("thread"));
    std::mutex lock;  // the application's
    int heard = 0;
    constexpr int messages = 500;
    std::vector<std::byte> got(8);
    Request receive;
    std::function<void(const Status&)> next = [&](const Status&) {
        const std::lock_guard guard(lock);
        if (++heard < messages) receive = pair.b.irecv(pair.to_a, 1, got, next);
    };
    {
        const std::lock_guard guard(lock);
        receive = pair.b.irecv(pair.to_a, 1, got, next);
    }
    for (int i = 0; i < messages; ++i) {
        pair.a.send(pair.to_b, 1, pattern(8));
        const std::lock_guard guard(lock);
        static_cast<void>(pair.b.traffic());  // calls in with the lock that the callback wants
    }
    const auto end = SteadyClock::now() + 20s;
    const auto count = [&] {
        const std::lock_guard guard(lock);
        return heard;
    };
    while (count() < messages && SteadyClock::now() < end) std::this_thread::yield();
    CHECK(count() == messages);
}

TEST_CASE("threads: two threads wait while the helper helps", "[engine]") {
    Pair pair(with_mode("thread", GENERATE("multiple")));
    constexpr int messages = 300;
    std::vector<std::thread> all;
    std::atomic<int> wrong = 0;
    for (unsigned t = 0; t < 2; ++t) {
        all.emplace_back([&, t] {
            std::vector<std::byte> got(8);
            for (unsigned i = 0; i < messages; ++i) {
                pair.a.send(pair.to_b, t, pattern(8, i));
                pair.a.recv(pair.to_b, t + 10, got);
                if (got != pattern(8, i)) ++wrong;
            }
        });
        all.emplace_back([&, t] {
            std::vector<std::byte> got(8);
            for (int i = 0; i < messages; ++i) {
                pair.b.recv(pair.to_a, t, got);
                pair.b.send(pair.to_a, t + 10, got);
            }
        });
    }
    for (auto& thread : all) thread.join();
    CHECK(wrong == 0);
}

TEST_CASE("threads: connecting starts none, but for the helper of mode thread", "[engine]") {
    const auto threads = [] {
        std::set<std::string> all;
        for (const auto& one : std::filesystem::directory_iterator("/proc/self/task"))
            all.insert(one.path().filename());
        return all;
    };
    const std::string mode = GENERATE("poll", "block", "hybrid", "thread");
    const std::string rails = GENERATE("tcp:*", "shm:node");
    INFO("mode " << mode << ", rails " << rails);
    auto config = with_mode(mode);
    config.set("rails", rails);
    const auto before = threads();  // of which some may be gone soon: a thread that was joined is there a moment longer
    Pair pair(config);
    std::vector<std::byte> got(100'000);
    const auto data = pattern(got.size());
    auto receive = pair.b.irecv(pair.to_a, 1, got);
    auto send = pair.a.isend(pair.to_b, 1, data);
    CHECK(pair.finish(pair.b, receive).ok());
    CHECK(pair.finish(pair.a, send).ok());
    std::size_t started = 0;
    for (const auto& one : threads()) started += before.contains(one) ? 0 : 1;
    CHECK(started == (mode == "thread" ? 2 : 0));  // of two contexts
}

TEST_CASE("threads: a callback that waits is refused instead of waiting for itself", "[engine]") {
    const auto data = pattern(8);
    Pair pair(with_mode(GENERATE("poll", "thread")));
    std::atomic<int> refused = 0;
    std::vector<std::byte> got(8);
    Request receive;
    const auto expect_refusal = [&](const auto& wait) {
        try {
            wait();
        } catch (const Error& error) {
            if (error.code() == ErrorCode::invalid_argument) ++refused;
        }
    };
    std::atomic<bool> told = false;
    std::vector<std::byte> memory(8);
    const auto region = pair.a.register_memory(memory);
    const RemotePlace place{region.key(), 0};
    std::vector<std::byte> large(1'000'000);
    receive = pair.b.irecv(pair.to_a, 1, got, [&](const Status&) {
        expect_refusal([&] { pair.b.wait(receive); });
        expect_refusal([&] { static_cast<void>(pair.b.wait_any(std::span(&receive, 1))); });
        expect_refusal([&] { static_cast<void>(pair.b.recv(pair.to_a, 2, got)); });
        expect_refusal([&] { pair.b.put(pair.to_a, place, data); });
        expect_refusal([&] { pair.b.get(pair.to_a, place, got); });
        expect_refusal([&] { static_cast<void>(pair.b.fetch_add(pair.to_a, place, std::uint64_t{1})); });
        expect_refusal([&] { pair.b.send(pair.to_a, 3, large); });
        expect_refusal([&] { pair.b.flush(); });
        told = true;
    });
    auto send = pair.a.isend(pair.to_b, 1, data);
    pair.until([&] { return told.load(); });
    CHECK(refused == 8);
    CHECK(pair.finish(pair.b, receive).ok());
    // Nothing was begun: what is sent now is for others, whoever has the memory now keeps it.
    auto late = pair.a.isend(pair.to_b, 2, data);
    std::optional<Message> message;
    pair.until([&] { return (message = pair.b.mprobe(pair.to_a, 2)).has_value(); });
    CHECK(pair.finish(pair.a, late).ok());
    pair.until([&] { return pair.b.flush(std::chrono::nanoseconds(0)); });
    CHECK(std::ranges::count(memory, std::byte{0}) == 8);
    CHECK(!pair.a.probe(pair.to_b, 3));
}

TEST_CASE("threads: a context with a helper may go at any moment", "[engine]") {
    for (int i = 0; i < 8; ++i) {
        const auto data = pattern(8);
        Pair pair(with_mode("thread"));
        auto send = pair.a.isend(pair.to_b, 1, data);
        if (i % 2 == 0) pair.b.progress();
        if (i % 4 == 0) pair.a.wait(send);
    }
}

TEST_CASE("threads: who waits for nothing costs nothing", "[engine]") {
    auto config = two_rails();
    config.set("tcp.interfaces", "127.0.1.1,127.0.1.2,127.0.1.3,127.0.1.4");
    config.set("progress", GENERATE("block", "hybrid", "thread"));
    Pair pair(config);
    std::vector<std::byte> got(8);
    auto first = pair.b.irecv(pair.to_a, 1, got);  // all rails are connected and measured
    const auto data = pattern(8);
    auto send = pair.a.isend(pair.to_b, 1, data);
    const auto settled = SteadyClock::now() + 700ms;
    const auto limit = SteadyClock::now() + 30s;
    while (SteadyClock::now() < settled || (pair.a.models(pair.to_b).size() < 4 && SteadyClock::now() < limit)) {
        pair.a.progress();
        pair.b.progress();
    }
    CHECK(pair.finish(pair.b, first).ok());
    CHECK(pair.finish(pair.a, send).ok());
    CHECK(pair.a.models(pair.to_b).size() == 4);
    std::vector<std::byte> other(8);
    auto never = pair.b.irecv(pair.to_a, 7, other);
    std::thread end([&] {
        // Only this thread sleeps by the clock: the time is what is measured over. 4 ms are usual, 0.2 %, for the keepalives of
        // two contexts over four links. Instrumented, 5 % must do. What else runs on the machine takes no CPU time of ours, but
        // makes what we do slower, and packets of others may come in while we have the core: so one time of several must do.
        // Who looks all the time does so in each.
        bool cheap = false;
        for (int times = 0; times < 5 && !cheap; ++times) {
            const auto before = usage_of(RUSAGE_SELF);
            std::this_thread::sleep_for(2s);
            const auto after = usage_of(RUSAGE_SELF);
            const auto cpu = after.cpu - before.cpu;
            UNSCOPED_INFO(cpu.count() << " us of CPU, " << after.switches - before.switches << " sleeps in 2 s");
            cheap = cpu < (test::thinned == 1 ? 10ms : 100ms) && after.switches - before.switches < 200;
        }
        CHECK(cheap);
        pair.a.send(pair.to_b, 7, pattern(8));
    });
    CHECK(pair.b.wait(never).ok());
    end.join();
}

// Progress: switching between modes.
#include <unistd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "engine/pair.hpp"

using namespace railmux;
using test::Pair;
using test::pattern;
using test::with_mode;
using namespace std::chrono_literals;
using SteadyClock = std::chrono::steady_clock;

TEST_CASE("threads: modes change while messages flow", "[engine]") {
    Pair pair(with_mode("hybrid", GENERATE("single", "multiple")));
    constexpr int messages = 400;
    std::thread other([&] {
        std::vector<std::byte> got(8);
        for (int i = 0; i < messages; ++i) {
            pair.b.recv(pair.to_a, 1, got);
            pair.b.send(pair.to_a, 2, got);
        }
    });
    constexpr std::array modes{ProgressMode::thread, ProgressMode::poll,   ProgressMode::block,
                               ProgressMode::thread, ProgressMode::thread, ProgressMode::hybrid};
    std::vector<std::byte> got(8);
    for (unsigned i = 0; i < messages; ++i) {
        if (i % 20 == 0) {
            const auto mode = modes.at(i / 20 % modes.size());
            pair.a.set_progress(mode);
            CHECK(pair.a.progress_mode() == mode);
        }
        pair.a.send(pair.to_b, 1, pattern(8, i));
        pair.a.recv(pair.to_b, 2, got);
        REQUIRE(got == pattern(8, i));
    }
    other.join();
}

namespace {

/// Whether the kernel has the thread asleep.
bool asleep(pid_t thread) {
    std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(stat, text);
    const auto name_end = text.rfind(')');
    return name_end != std::string::npos && text.size() > name_end + 2 && text[name_end + 2] == 'S';
}

}  // namespace

TEST_CASE("threads: a mode changes while others sleep in a wait", "[engine]") {
    Pair pair(with_mode("block", "multiple"));
    constexpr std::array modes{ProgressMode::thread, ProgressMode::block,  ProgressMode::thread,
                               ProgressMode::poll,   ProgressMode::block,  ProgressMode::hybrid,
                               ProgressMode::thread, ProgressMode::hybrid, ProgressMode::block};
    constexpr std::size_t sleepers = 2;  // one has the turn
    for (const auto mode : modes) {
        INFO("to " << to_string(mode) << " from " << to_string(pair.a.progress_mode()));
        std::atomic<std::size_t> over = 0;
        std::vector<std::thread> all;
        std::array<std::vector<std::byte>, sleepers> got;
        std::array<std::atomic<pid_t>, sleepers> ids{};
        for (std::size_t i = 0; i < sleepers; ++i) {
            all.emplace_back([&, i] {
                got.at(i).resize(8);
                ids.at(i) = ::gettid();
                pair.a.recv(pair.to_b, i, got.at(i));
                ++over;
            });
        }
        // In mode poll who has the turn never sleeps.
        const auto all_asleep = pair.a.progress_mode() == ProgressMode::poll ? sleepers - 1 : sleepers;
        const auto begun = SteadyClock::now();
        const auto sleeping = [&] {
            return static_cast<std::size_t>(
                std::ranges::count_if(ids, [](const auto& id) { return id != 0 && asleep(id); }));
        };
        auto count = sleeping();  // at one moment: who looks for silent links wakes now and then
        for (; count < all_asleep && SteadyClock::now() < begun + 10s; count = sleeping()) std::this_thread::yield();
        CHECK(count >= all_asleep);
        pair.a.set_progress(mode);
        CHECK(over == 0);
        for (std::size_t i = 0; i < sleepers; ++i) pair.b.send(pair.to_a, i, pattern(8, static_cast<unsigned>(i)));
        const auto end = SteadyClock::now() + 10s;
        while (over < sleepers && SteadyClock::now() < end) pair.b.progress();
        CHECK(over == sleepers);
        for (auto& thread : all) thread.join();
        for (std::size_t i = 0; i < sleepers; ++i) CHECK(got.at(i) == pattern(8, static_cast<unsigned>(i)));
    }
}

TEST_CASE("threads: a mode is not changed from within a callback", "[engine]") {
    const auto data = pattern(8);
    Pair pair(with_mode(GENERATE("poll", "thread")));
    std::atomic<int> told = 0;
    std::vector<std::byte> got(8);
    auto receive = pair.b.irecv(pair.to_a, 1, got, [&](const Status&) {
        try {
            pair.b.set_progress(ProgressMode::block);
            told = 1;
        } catch (const Error& error) {
            told = error.code() == ErrorCode::invalid_argument ? 2 : 3;
        }
    });
    auto send = pair.a.isend(pair.to_b, 1, data);
    pair.until([&] { return told != 0; });
    CHECK(told == 2);
}

#include "base/log.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <railmux/error.hpp>

#include "base/thread_guard.hpp"

#include "captured.hpp"

using railmux::base::Logger;
using railmux::base::LogLevel;
using railmux::test::captured;

TEST_CASE("lines carry prefix and label, and stay below the level", "[log]") {
    Logger log(LogLevel::warning, "railmux[3]: ");
    CHECK_FALSE(log.enabled(LogLevel::info));
    const auto text = captured([&] {
        log.info("not shown");
        log.warning("rail {} down: {}", "tcp:eth1", "carrier lost");
        log.error("100% {{}}");
    });
    CHECK(text == "railmux[3]: warning: rail tcp:eth1 down: carrier lost\nrailmux[3]: error: 100% {}\n");
}

TEST_CASE("quoted bytes cannot forge a line", "[log]") {
    Logger log;
    const auto text = captured([&] { log.error("peer said: {}", "bye\nrailmux: all is well\x1b[2J"); });
    CHECK(text == "railmux: error: peer said: bye?railmux: all is well?[2J\n");
}

TEST_CASE("lines of several threads stay whole", "[log]") {
    Logger log(LogLevel::info, "");
    const auto text = captured([&] {
        std::vector<std::thread> threads;
        for (int t = 0; t < 4; ++t) {
            threads.emplace_back([&] {
                for (int i = 0; i < 200; ++i) log.info("0123456789");
            });
        }
        for (auto& thread : threads) thread.join();
    });
    CHECK(std::count(text.begin(), text.end(), '\n') == 800);
    CHECK(text.size() == 800 * 11);
    std::size_t whole = 0;
    for (auto at = text.find("0123456789\n"); at != text.npos; at = text.find("0123456789\n", at + 1)) ++whole;
    CHECK(whole == 800);
}

TEST_CASE("log levels have names", "[log]") {
    CHECK(railmux::base::parse_log_level("debug") == LogLevel::debug);
    CHECK(railmux::base::parse_log_level("off") == LogLevel::off);
    CHECK_THROWS_AS(railmux::base::parse_log_level("loud"), railmux::Error);
}

TEST_CASE("a thread guard lets calls nest and follow each other", "[thread_guard]") {
    railmux::base::ThreadGuard guard;
    {
        [[maybe_unused]] const auto outer = guard.enter();
        [[maybe_unused]] const auto inner = guard.enter();
    }
    std::thread([&] { [[maybe_unused]] const auto scope = guard.enter(); }).join();
    [[maybe_unused]] const auto scope = guard.enter();
}

TEST_CASE("every error code has a name of its own", "[error]") {
    std::vector<std::string> names;
    for (std::uint16_t code = 0; code <= 18; ++code) {
        names.emplace_back(railmux::to_string(static_cast<railmux::ErrorCode>(code)));
    }
    std::sort(names.begin(), names.end());
    CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
    CHECK(std::find(names.begin(), names.end(), "unknown") == names.end());
    CHECK(railmux::to_string(static_cast<railmux::ErrorCode>(999)) == "unknown");
}

// The clock: a counter kept right by the system's clock, under given readings and on this machine.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#include "base/clock.hpp"

using namespace railmux;
using base::Nanoseconds;

namespace {

constexpr double ticks_per_ns = 2.6;

std::uint64_t ticks_at(double ns) { return static_cast<std::uint64_t>(ns * ticks_per_ns) + 1'000'000; }

/// A clock read every `step` for `steps` times, as SharedTickClock is: adjusted when its line ends. The system's clock runs at
/// `system(t)` and is read up to 40 ns late. Returns the largest error; fails when time goes back.
template <typename System>
Nanoseconds worst_error(System system, double step, int steps, double settled) {
    std::minstd_rand random(7);  // NOLINT: repeatable
    std::uniform_real_distribution<double> late(0, 40);
    const auto read = [&](double t) { return static_cast<Nanoseconds>(system(t) + late(random)); };
    base::TickClock clock(ticks_at(0), read(0), ticks_at(50'000), read(50'000));
    Nanoseconds worst = 0;
    Nanoseconds last = 0;
    for (int i = 1; i <= steps; ++i) {
        const double t = 50'000 + i * step;
        const auto ticks = ticks_at(t);
        if (ticks - clock.line().since >= clock.line().span) clock.adjust(ticks, read(t));
        const auto now = clock.line().at(ticks);
        REQUIRE(now >= last);
        last = now;
        if (t >= settled) worst = std::max(worst, std::abs(now - static_cast<Nanoseconds>(system(t))));
    }
    return worst;
}

}  // namespace

TEST_CASE("clock: a counter follows the system's clock") {
    const auto plain = [](double t) { return t; };
    CHECK(worst_error(plain, 700, 100'000, 0) < 150);
    CHECK(worst_error(plain, 70'000, 100'000, 1e7) < 100);
    CHECK(worst_error(plain, 3e9, 1000, 0) < 150);  // read once in a while
}

TEST_CASE("clock: a slewed system clock is followed within two seconds") {
    const auto slewed = [](double t) { return t * (t > 5e9 ? 1.0 + 500e-6 : 1.0) - (t > 5e9 ? 5e9 * 500e-6 : 0); };
    CHECK(worst_error(slewed, 100'000, 200'000, 0) < 10'000);  // 500 ppm over the longest span, and its half
    CHECK(worst_error(slewed, 100'000, 200'000, 8e9) < 200);
}

TEST_CASE("clock: a machine that slept does not bend the rate") {
    base::TickClock clock(ticks_at(0), 0, ticks_at(1e6), 1'000'000);
    clock.adjust(ticks_at(9e6), 9'000'000);
    const auto scale = clock.line().scale;
    SECTION("its counter went on while the system's clock stood") { clock.adjust(ticks_at(3600e9), 10'000'000); }
    SECTION("its counter began anew") { clock.adjust(5, 10'000'000); }
    SECTION("its counter stood while the system's clock went on") {
        clock.adjust(ticks_at(9.001e6), 3'600'000'000'000);
    }
    const auto& line = clock.line();
    CHECK(line.at(line.since) >= 9'000'000);
    CHECK(line.scale <= scale);
    CHECK(line.scale >= scale - scale / 512);
}

TEST_CASE("clock: this process's never goes back in a thread, and agrees with the system's") {
    const auto watch = [] {
        auto last = base::now_ns();
        const auto until = last + 20 * base::millisecond;
        while (last < until) {
            const auto now = base::now_ns();
            if (now < last) std::abort();
            last = now;
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(3);
    for (int i = 0; i < 3; ++i) threads.emplace_back(watch);
    for (auto& thread : threads) thread.join();

    const auto system = [] {
        return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    };
    auto nearest = base::second;
    for (int i = 0; i < 100; ++i) {  // something may come between two readings, but not each time
        const auto before = system();
        const auto now = base::now_ns();
        const auto after = system();
        nearest = std::min(nearest, std::max(before - now, now - after));
    }
    CHECK(nearest < 2 * base::microsecond);
}

#include <catch2/catch.hpp>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/spinning_lock.hpp"

using railmux::base::millisecond;
using railmux::base::now_ns;
using railmux::base::SpinningLock;

namespace {

/// Keeps the lock until somebody wants it, and for so long besides.
void keep(SpinningLock& lock, railmux::base::Nanoseconds time) {
    while (!lock.wanted()) std::this_thread::yield();
    const auto end = now_ns() + time;
    while (now_ns() < end) std::this_thread::yield();
}

}  // namespace

TEST_CASE("spinning lock: one at a time, of more threads than cores") {
    SpinningLock lock;
    std::uint64_t count = 0;  // not atomic: the lock is what makes it right
    constexpr std::uint64_t each = 20'000;
    const auto threads = std::thread::hardware_concurrency() + 2;
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t) {
        all.emplace_back([&] {
            for (std::uint64_t i = 0; i < each; ++i) {
                const std::lock_guard stay(lock);
                const std::lock_guard again(lock);
                ++count;
            }
        });
    }
    for (auto& thread : all) thread.join();
    CHECK(count == threads * each);
    CHECK_FALSE(lock.wanted());
}

TEST_CASE("spinning lock: those who have gone to sleep for it all get it") {
    SpinningLock lock;
    constexpr int threads = 3;
    int through = 0;
    std::vector<std::thread> all;
    lock.lock();
    for (int t = 0; t < threads; ++t) {
        all.emplace_back([&] {
            const std::lock_guard stay(lock);
            ++through;
        });
    }
    keep(lock, 2 * millisecond);  // far longer than anybody spins
    CHECK(through == 0);
    lock.unlock();
    for (auto& thread : all) thread.join();
    CHECK(through == threads);
}

TEST_CASE("spinning lock: tells who holds it that it is wanted, and that somebody has been let in") {
    SpinningLock lock;
    CHECK_FALSE(lock.wanted());
    lock.lock();
    const auto before = lock.let_in();
    std::thread other([&] { const std::lock_guard stay(lock); });
    keep(lock, 0);
    CHECK(lock.let_in() == before);
    lock.unlock();
    other.join();
    CHECK(lock.let_in() == before + 1);
    CHECK_FALSE(lock.wanted());
}

TEST_CASE("spinning lock: a condition may be waited for with it") {
    SpinningLock lock;
    std::condition_variable_any changed;
    bool ready = false;
    std::thread other([&] {
        const std::lock_guard stay(lock);
        ready = true;
        changed.notify_all();
    });
    {
        std::unique_lock stay(lock);
        changed.wait(stay, [&] { return ready; });
    }
    other.join();
    CHECK(ready);
}

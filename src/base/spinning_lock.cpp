#include "base/spinning_lock.hpp"

#include <algorithm>
#include <thread>
#include <cstdlib>

#include "base/clock.hpp"
#include "base/pause.hpp"

namespace railmux::base {

namespace {
int env(const char* n, int d) { const char* v = std::getenv(n); return v ? std::atoi(v) : d; }
const int most_pauses = env("PAUSES", 32);
const int slice = env("SLICE", 5000);
// For as long as to be woken takes at most; the holder may have lost its core meanwhile, perhaps to us.
constexpr Nanoseconds before_yielding = 2 * microsecond;
constexpr Nanoseconds before_sleeping = 20 * microsecond;
}  // namespace

void SpinningLock::contend(const void* self) {
    came_.fetch_add(1, std::memory_order_relaxed);
    if (!spin()) {
        while (state_.exchange(State::slept_for, std::memory_order_acquire) != State::free) {
            state_.wait(State::slept_for, std::memory_order_relaxed);
        }
    }
    last_.store(self, std::memory_order_relaxed);
    let_in_.fetch_add(1, std::memory_order_relaxed);
}

bool SpinningLock::spin() {
    const auto begun = now_ns();
    auto spun = Nanoseconds{0};
    while (spun < slice) {
        const auto stays = stays_.load(std::memory_order_relaxed);
        for (int i = 0; i < most_pauses; ++i) pause();
        spun = now_ns() - begun;
        if (stays_.load(std::memory_order_relaxed) != stays) continue;
        if (state_.load(std::memory_order_relaxed) == State::free && try_take()) {
            rivals_.store(false, std::memory_order_relaxed);
            return true;
        }
    }
    rivals_.store(true, std::memory_order_relaxed);
    for (int i = 0;; ++i) {
        if (state_.load(std::memory_order_relaxed) == State::free && try_take()) return true;
        if (i % 32 == 31) {
            spun = now_ns() - begun;
            if (spun > slice + before_sleeping) return false;
            if (spun > slice + before_yielding) std::this_thread::yield();
        }
        pause();
    }
}

}  // namespace railmux::base

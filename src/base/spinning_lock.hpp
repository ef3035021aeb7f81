// SpinningLock: a recursive mutex for stays of well under a microsecond: whoever finds it taken spins before he sleeps.
//
// std::mutex sleeps at once. Between two threads that come all the time every stay then costs a sleep and a wake-up, some
// hundred times what the stay takes. Looking costs, too: each look takes the lock's cache line away from the holder, and a
// stay brings all that is worked on over from the other core. So those outside look ever more rarely, and the holder, whose
// cache is warm, gets in several times in a row; wanted() tells him that he might pause, for it is not fair.
//
// Threads: any; unlock by the holder.
// Lifetime: not held when it ends.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/in_line.hpp"

namespace railmux::base {

class SpinningLock {
public:
    SpinningLock() = default;
    SpinningLock(const SpinningLock&) = delete;
    SpinningLock& operator=(const SpinningLock&) = delete;

    RAILMUX_IN_LINE void lock() {
        const auto* const self = this_thread();
        if (holder_.load(std::memory_order_relaxed) == self) [[unlikely]] {  // nobody else writes that
            ++depth_;
            return;
        }
        auto expected = State::free;
        if (!state_.compare_exchange_strong(expected, State::taken, std::memory_order_acquire,
                                            std::memory_order_relaxed)) [[unlikely]]
            contend();
        holder_.store(self, std::memory_order_relaxed);
    }
    RAILMUX_IN_LINE void unlock() {
        if (depth_ > 0) [[unlikely]] {
            --depth_;
            return;
        }
        holder_.store(nullptr, std::memory_order_relaxed);
        if (state_.exchange(State::free, std::memory_order_release) == State::slept_for) [[unlikely]]
            state_.notify_one();
    }

    /// Whether anybody waits for it; and how many of those have got it so far.
    [[nodiscard]] bool wanted() const noexcept { return came_.load(std::memory_order_relaxed) != let_in(); }
    [[nodiscard]] std::uint32_t let_in() const noexcept { return let_in_.load(std::memory_order_relaxed); }

private:
    enum class State : std::uint32_t { free, taken, slept_for };

    [[nodiscard]] static const void* this_thread() noexcept {
        static thread_local const char here = 0;
        return &here;
    }
    void contend();
    [[nodiscard]] bool spin();

    static constexpr std::size_t line = 64;

    alignas(line) std::atomic<State> state_{State::free};
    std::atomic<const void*> holder_{nullptr};
    std::uint32_t depth_ = 0;  // further times that the holder has taken it
    alignas(line) std::atomic<std::uint32_t> came_{0};
    std::atomic<std::uint32_t> let_in_{0};
};

}  // namespace railmux::base

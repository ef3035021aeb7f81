// ThreadGuard: a debug-build assertion that the calls of one object never overlap in time.
//
//   void Rail::poll(...) {
//       [[maybe_unused]] const auto scope = guard_.enter();
//
// Calls nested on one thread are fine; a second thread inside at the same moment ends the process with a text. Nothing
// is left of it with NDEBUG.
//
// Threads: enter() from anywhere; that is its purpose.
// Lifetime: a member of the object it guards; scopes end before it does.
#pragma once

#ifdef NDEBUG

namespace railmux::base {
class ThreadGuard {
public:
    struct Scope {
        constexpr ~Scope() noexcept {}  // not trivial, so that an unused scope draws no warning
    };
    constexpr Scope enter() noexcept { return {}; }
};
}  // namespace railmux::base

#else

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace railmux::base {
class ThreadGuard {
public:
    class Scope {
    public:
        explicit Scope(ThreadGuard& guard) noexcept : guard_(guard) { guard_.begin(); }
        ~Scope() { guard_.end(); }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

    private:
        ThreadGuard& guard_;
    };
    Scope enter() noexcept { return Scope(*this); }

private:
    void begin() noexcept {
        const auto self = std::this_thread::get_id();
        auto owner = std::thread::id{};
        // Relaxed: the guard must not create the ordering whose absence a race detector should see.
        if (!owner_.compare_exchange_strong(owner, self, std::memory_order_relaxed) && owner != self) {
            std::fputs("railmux: two threads in one object at the same time; see the thread rule in its header\n",
                       stderr);
            std::abort();
        }
        ++depth_;
    }
    void end() noexcept {
        if (--depth_ == 0) owner_.store(std::thread::id{}, std::memory_order_relaxed);
    }

    std::atomic<std::thread::id> owner_{};
    int depth_ = 0;  // touched by the owner only
};
}  // namespace railmux::base

#endif

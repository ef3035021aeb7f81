// Progress: the helper thread of ProgressMode::thread.
#include <pthread.h>

#include <csignal>
#include <string>
#include <system_error>
#include <utility>

#include <railmux/error.hpp>

#include "progress/progress.hpp"

namespace railmux::progress {

namespace {
// While the application calls in again and again it looks itself, and two that look are in each other's way. When nobody else
// has looked for so long, the helper takes over: that much later at most something is seen while the application computes.
constexpr std::chrono::microseconds grace{500};
}  // namespace

void Progress::set_mode(ProgressMode mode) {
    const std::lock_guard change(mode_change_);
    if (mode != ProgressMode::thread) stop();
    const bool start = mode == ProgressMode::thread && !helper_.joinable();
    if (start) {
        helper_set_ = std::make_unique<Sleeper>();
        flags_.fetch_or(shared_flag, std::memory_order_relaxed);
    }
    {
        const Lock lock(*this);
        mode_.store(mode, std::memory_order_relaxed);
        ring(turns_.set_helped(mode == ProgressMode::thread));
    }
    if (start) start_helper();
}

void Progress::start_helper() {
    // Signals are for the application's threads.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        helper_ = std::thread([this] { help(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    } catch (const std::system_error& error) {
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        {
            const Lock lock(*this);
            mode_.store(ProgressMode::hybrid, std::memory_order_relaxed);
            ring(turns_.set_helped(false));
            helper_set_.reset();
        }
        unshare();
        throw Error(ErrorCode::system, std::string("no thread that progresses: ") + error.what(),
                    "raise the limit of processes (ulimit -u), or use another value of `progress`");
    }
    pthread_setname_np(helper_.native_handle(), "railmux");
}

void Progress::stop() {
    if (!helper_.joinable()) return;
    stop_.store(true);
    end_parking();
    helper_set_->wake();
    helper_.join();
    stop_.store(false);
    {
        const Lock lock(*this);
        ring(turns_.set_helped(false));
    }
    unshare();
}

/// The helper is gone: without the lock, as who has taken that must let it go.
void Progress::unshare() {
    if (!always_shared_) flags_.fetch_and(static_cast<std::uint8_t>(~shared_flag), std::memory_order_relaxed);
}

void Progress::help() {
    mutex_.lock();
    while (!stop_.load()) {
        if (!on_duty()) {
            mutex_.unlock();
            park();
            mutex_.lock();
            continue;
        }
        const bool happened = subject_.look(true);
        report(Who::helper, true, happened);
        if (!happened) static_cast<void>(sleep(Who::helper, *helper_set_, never));
        if (mutex_.wanted()) let_in();
    }
    mutex_.unlock();
}

/// Whether nobody else looks; if somebody does, how to park is decided, too.
bool Progress::on_duty() {
    const bool active = std::exchange(seen_activity_, turns_.activity()) != turns_.activity();
    if (!active && !turns_.waited_for()) return true;
    // Who sleeps in a wait can afford to call the helper when he leaves; who spins from message to message cannot.
    if (!active && turns_.asleep(Who::waiter)) deep_.store(true, std::memory_order_relaxed);
    return false;
}

void Progress::park() {
    std::unique_lock lock(parking_);
    const auto over = [this] { return stop_.load() || !deep_.load(std::memory_order_relaxed); };
    if (deep_.load(std::memory_order_relaxed)) {
        parked_.wait(lock, over);
    } else {
        parked_.wait_for(lock, grace, [this] { return stop_.load(); });
    }
}

void Progress::end_parking() {
    const std::lock_guard lock(parking_);
    deep_.store(false, std::memory_order_relaxed);
    parked_.notify_all();
}

}  // namespace railmux::progress

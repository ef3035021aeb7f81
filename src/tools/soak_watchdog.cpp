#include "tools/soak_watchdog.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace railmux::tools {

SoakWatchdog::SoakWatchdog(std::chrono::milliseconds limit, std::chrono::milliseconds grace)
    : limit_(limit), grace_(grace), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

void SoakWatchdog::watch(const std::stop_token& stop) {
    using Clock = std::chrono::steady_clock;
    std::unique_lock lock(mutex_);
    auto seen = ended_.load();
    auto since = Clock::now();
    const auto tick = std::max(limit_ / 20, std::chrono::milliseconds(1));
    while (!wake_.wait_for(lock, stop, tick, [&] { return stop.stop_requested(); })) {
        if (const auto ended = ended_.load(); ended != seen) {
            seen = ended;
            since = Clock::now();
            continue;
        }
        const auto quiet = Clock::now() - since;
        if (quiet < limit_) continue;
        if (!barking_.exchange(true)) asked_ = false;
        if (asked_ || quiet < limit_ + grace_) continue;
        std::fprintf(stderr, "\nrailmux: WRONG: hung: a call into railmux has not come back for %lld ms\n",
                     static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(quiet).count()));
        std::_Exit(1);
    }
}

}  // namespace railmux::tools

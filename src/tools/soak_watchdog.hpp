// SoakWatchdog: notices that nothing ends any more, even if the call that should end something does not come back.
//
// Threads: owns one, which only counts time; the others are called by the thread that soaks.
// Lifetime: the thread ends with the object.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace railmux::tools {

class SoakWatchdog {
public:
    /// Barks if `ended` is not called for `limit`. If nobody asks for that within `grace` more, the whole process is hung
    /// inside a call: it says so and ends the process with exit code 1.
    SoakWatchdog(std::chrono::milliseconds limit, std::chrono::milliseconds grace);

    /// Something has ended.
    void ended() noexcept { ++ended_; }
    /// Nothing has, for too long.
    [[nodiscard]] bool barks() noexcept {
        asked_ = true;
        return barking_;
    }

private:
    void watch(const std::stop_token& stop);

    std::chrono::milliseconds limit_;
    std::chrono::milliseconds grace_;
    std::atomic<std::uint64_t> ended_{0};
    std::atomic<bool> barking_{false};
    std::atomic<bool> asked_{false};
    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::jthread thread_;  // last: the others are there before it begins and until it has ended
};

}  // namespace railmux::tools

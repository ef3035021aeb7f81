// Sleeper: one epoll set over everything a context waits for, so that one thread can sleep until any of it happens.
//
// Threads: sleep() by one thread at a time; wake() by any.
// Lifetime: the watched descriptors are closed after it, or forgotten first.
#pragma once

#include <vector>

#include "base/clock.hpp"

namespace railmux::progress {

class Sleeper {
public:
    /// Throws Error(system) when the kernel gives no descriptor.
    Sleeper();
    ~Sleeper();
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    /// Watches `fd` for input from now on. Watching it again does nothing.
    void watch(int fd);
    void forget(int fd);

    /// Until a watched descriptor is readable, wake() was called, or `limit` is over.
    void sleep(base::Nanoseconds limit);
    /// Ends the sleep under way, or the next one.
    void wake() noexcept;

private:
    int epoll_ = -1;
    int wake_ = -1;
    std::vector<int> watched_;
};

}  // namespace railmux::progress

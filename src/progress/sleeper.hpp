// Sleeper: one epoll set over everything a context waits for, so that one thread can sleep until any of it happens.
//
// Threads: sleep() by one thread at a time; wake() by any.
// Lifetime: owns its epoll set; the watched descriptors belong to others.
#pragma once

#include "base/clock.hpp"

namespace railmux::progress {

class Sleeper {
public:
    /// Throws Error(system) when the kernel gives no descriptor.
    Sleeper();
    ~Sleeper();
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;

    /// Watches `fd` for input until it is closed. Watching it again does nothing, so that whoever is about to sleep names
    /// what it waits for and nobody has to keep a list: a closed descriptor leaves the set, its number may come again.
    void watch(int fd);

    /// Until a watched descriptor is readable, wake() was called, or `limit` is over.
    void sleep(base::Nanoseconds limit);
    /// Ends the sleep under way, or the next one.
    void wake() noexcept;

private:
    int epoll_ = -1;
    int wake_ = -1;
};

}  // namespace railmux::progress

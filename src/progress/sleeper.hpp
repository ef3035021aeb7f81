// Sleeper: one epoll set over everything a context waits for, so that one thread can sleep until any of it happens, by
// sleep() or, outside of the library, by its descriptor.
//
// Threads: wake() by any; everything else by one thread at a time.
// Lifetime: owns its epoll set, event and timer; the watched descriptors belong to others.
#pragma once

#include <vector>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"

namespace railmux::progress {

class Sleeper {
public:
    /// Throws Error(system) when the kernel gives no descriptor.
    Sleeper();

    /// Watches `fd` for input until it is closed. Watching it again does nothing, so that whoever is about to sleep names
    /// what it waits for and nobody has to keep a list: a closed descriptor leaves the set, its number may come again.
    void watch(int fd);
    /// The same for one that stays open as long as this object: the second time it costs next to nothing.
    void keep(int fd);
    /// No longer watches it, or anything at all.
    void forget(int fd);
    void forget_all();

    /// Until a watched descriptor is readable (true), wake() was called, or `limit` is over; up to a millisecond longer where
    /// the kernel, or the filter of a container, has no epoll_pwait2 (Linux 5.11).
    bool sleep(base::Nanoseconds limit);
    /// Ends the sleep under way, or the next one.
    void wake() noexcept;

    /// Readable when a watched descriptor is, or after wake(), or when the time of expire_in() is over.
    [[nodiscard]] int descriptor() const noexcept { return epoll_.get(); }
    /// Instead of what was set before; a time from `forever` on is none. Throws Error(system) as the constructor.
    void expire_in(base::Nanoseconds limit);
    /// Takes back wake() and expire_in().
    void clear() noexcept;

    static constexpr base::Nanoseconds forever = base::Nanoseconds{1} << 60;

private:
    base::FileDescriptor epoll_;
    base::FileDescriptor wake_;
    base::FileDescriptor timer_;  // made when it is first set
    bool timer_set_ = false;
    std::vector<int> watched_;  // now or once
    std::vector<int> kept_;     // those that need not be named again
};

}  // namespace railmux::progress

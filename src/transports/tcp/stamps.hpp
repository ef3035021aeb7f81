// Stamps: when the kernel of this host had what is read from a socket, which is earlier than somebody looked.
//
// Threads: pure but for the socket; one thread at a time a socket.
// Lifetime: values.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "base/clock.hpp"

namespace railmux::transports::tcp {

// To read two clocks takes little beside what it takes to read so many bytes.
inline constexpr ssize_t stamped_bytes = 512;

// On gigabit networks these come within some microseconds.
inline constexpr std::size_t stamped_tail = 1024;

/// The clock that people set, which the kernel's stamps are of, against ours.
class WallClock {
public:
    /// A moment of it that is over, by base::now_ns. 0: one of the two was set since this was last asked, or the process stood
    /// still between looking at them, so nobody knows.
    [[nodiscard]] base::Nanoseconds by_ours(base::Nanoseconds stamp) noexcept;

private:
    base::Nanoseconds ahead_ = 0;  // of ours
    base::Nanoseconds at_ = 0;     // when that was seen; 0: never
};

/// From now on the kernel notes when what the socket receives comes (SO_TIMESTAMPING). False: it does not know how.
[[nodiscard]] bool want_stamps(int socket) noexcept;

/// Reads what is there, as readv does. `came`, by base::now_ns: when the kernel had the last of it; 0: it does not say, or it
/// is too little for anybody to ask.
[[nodiscard]] ssize_t read_stamped(int socket, std::span<iovec> into, WallClock& clock,
                                   base::Nanoseconds& came) noexcept;

}  // namespace railmux::transports::tcp

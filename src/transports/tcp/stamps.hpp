// Stamps: when the kernel of this host had what is read from a socket, which is earlier than somebody looked.
//
// Threads: pure but for the socket; one thread at a time a socket.
// Lifetime: values.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <span>

#include "base/clock.hpp"

namespace railmux::transports::tcp {

// To read two clocks takes little beside what it takes to read so many bytes.
inline constexpr ssize_t stamped_bytes = 512;

/// From now on the kernel notes when what the socket receives comes (SO_TIMESTAMPING); without it nothing is lost but that.
void want_stamps(int socket) noexcept;

/// Reads what is there, as readv does. `came`, by base::now_ns: when the kernel had the last of it; 0: it does not say, or it
/// is too little for anybody to ask.
[[nodiscard]] ssize_t read_stamped(int socket, std::span<iovec> into, base::Nanoseconds& came) noexcept;

}  // namespace railmux::transports::tcp

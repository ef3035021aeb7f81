// Connection: a channel over a socket.
//
// Threads: one thread at a time per object.
// Lifetime: owns its socket.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/channel.hpp"

namespace railmux::bootstrap {

struct Connection {
    base::FileDescriptor socket;
    Channel channel;
    base::Nanoseconds since = 0;
    bool lost = false;  // the other side closed, or the socket failed
    std::uint64_t number = 0;
    std::string from;  // the other side, for people

    /// Writes and reads what can be written and read now; at most `most_read` bytes, so that a peer that floods us
    /// keeps nobody else waiting. What it read stands in the channel's inbox.
    void pump();
    /// Writes only: for whoever is not about to look at the inbox.
    void flush();

    static constexpr std::size_t most_read = 256 * 1024;
};

}  // namespace railmux::bootstrap

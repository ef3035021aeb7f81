// The unix sockets by which the processes of a node find each other: whole messages (SOCK_SEQPACKET), and descriptors with
// them.
//
// Threads: pure functions.
// Lifetime: what they return owns itself.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "base/file_descriptor.hpp"
#include "base/result.hpp"

namespace railmux::transports::shm {

/// Error(system).
[[nodiscard]] base::Result<base::FileDescriptor> listen_at(const std::string& name);
/// Connected at once, or Error(unreachable). Never blocks.
[[nodiscard]] base::Result<base::FileDescriptor> connect_to(const std::string& name);

/// The process at the other end, as this one sees it.
struct OtherEnd {
    pid_t process = 0;  // 0: in a process namespace of which this one sees nothing
    uid_t user = 0;
};
/// Error(system).
[[nodiscard]] base::Result<OtherEnd> other_end(const base::FileDescriptor& socket);

/// Never blocks. False, with errno, when it cannot be sent.
[[nodiscard]] bool send_message(const base::FileDescriptor& socket, std::span<const std::byte> bytes,
                                std::span<const int> descriptors) noexcept;

inline constexpr std::size_t most_descriptors = 3;  // of a message

struct Message {
    enum class State : std::uint8_t { nothing, arrived, hung_up };
    State state = State::nothing;
    std::span<const std::byte> bytes;                                // views `room`
    std::array<base::FileDescriptor, most_descriptors> descriptors;  // those that came, in order
};
/// Never blocks. What is longer than `room` has hung up: no message is.
[[nodiscard]] Message receive_message(const base::FileDescriptor& socket, std::span<std::byte> room) noexcept;

/// Whether the descriptor is an eventfd, to which a byte written by mistake can do nothing else than wake, and which, full, has
/// nobody wait who writes to it: as it is now. The other side, a process of the same user, can change that any time.
[[nodiscard]] bool is_bell(const base::FileDescriptor& descriptor) noexcept;

}  // namespace railmux::transports::shm

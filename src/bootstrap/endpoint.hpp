// Where to listen and whom to reach at start-up: "PORT", "HOST:PORT", "[V6]:PORT", "unix:PATH".
//
// Threads: pure functions; resolving a name may block.
// Lifetime: the caller owns the sockets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "base/values.hpp"

struct sockaddr;

namespace railmux::bootstrap {

/// The two halves of a place; an empty host means any. Throws Error(invalid_argument).
struct Place {
    std::string host;  // without brackets
    std::uint16_t port = 0;
};
[[nodiscard]] Place parse_place(std::string_view where);

struct ListeningSocket {
    base::FileDescriptor socket;
    std::uint16_t port = 0;  // 0 for a Unix socket
};

/// Listens; without a host on every address of both families. Throws Error(address_in_use, permission,
/// invalid_argument).
[[nodiscard]] std::vector<ListeningSocket> listen_at(std::string_view where);

/// Listens on every address of both families, on the first port of the range that is free there; 0-0: on any. Throws
/// Error(address_in_use, permission, invalid_argument).
[[nodiscard]] std::vector<ListeningSocket> listen_at(base::PortRange ports);

/// A place being reached, without blocking: every address it has, one after the other, and again while somebody may yet
/// come to listen there.
class Reaching {
public:
    /// Resolves the name, which may block. Throws Error(unreachable, invalid_argument).
    Reaching(std::string_view where, base::Nanoseconds deadline);
    ~Reaching();
    Reaching(const Reaching&) = delete;
    Reaching& operator=(const Reaching&) = delete;

    /// Moves on; a connected, non-blocking socket, or an invalid one while there is none. Throws Error(unreachable).
    [[nodiscard]] base::FileDescriptor poll(base::Nanoseconds now);
    /// What turns writable when poll has something to do (-1: nothing does), and when to poll at the latest.
    [[nodiscard]] int descriptor() const noexcept;
    [[nodiscard]] base::Nanoseconds wake() const noexcept;
    /// Once, when it takes more than a moment: what stands in the way.
    [[nodiscard]] std::string take_trouble();

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

/// A connected, non-blocking socket to the first address of `where` that answers before `deadline`. What may come to
/// life yet (nobody listens, no answer) is tried again, so that the two sides may start in any order; what cannot work
/// fails at once. Throws Error(unreachable, invalid_argument).
[[nodiscard]] base::FileDescriptor connect_to(std::string_view where, base::Nanoseconds deadline);

/// "10.0.0.1:5000", "[fd00::2]:5000" or "unix".
[[nodiscard]] std::string describe(const sockaddr& address);

/// This host's addresses that others may reach, most likely ones first: loopback and link-local ones left out.
[[nodiscard]] std::vector<std::string> own_addresses();

}  // namespace railmux::bootstrap

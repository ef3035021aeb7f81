// Who we are on this machine.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>

namespace railmux::base {

/// The host's name, or "localhost" when the kernel does not tell.
[[nodiscard]] inline std::string host_name() {
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
    return name.data();
}

[[nodiscard]] inline std::uint32_t process_id() noexcept { return static_cast<std::uint32_t>(::getpid()); }

/// Tells hosts apart even where addresses do not (every host has 127.0.0.1, many the same docker0): made of the kernel's
/// boot id and the network namespace, so two containers of one machine are two hosts.
[[nodiscard]] std::uint64_t host_identity();

}  // namespace railmux::base

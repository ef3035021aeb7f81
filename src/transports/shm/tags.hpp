// What stands for each descriptor in the epoll set of a shm rail: the link it belongs to, or one of the rail's own.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <cstdint>

#include "transports/transport.hpp"

namespace railmux::transports::shm {

// No link has generation 0.
inline constexpr std::uint64_t listener_tag = 0;
inline constexpr std::uint64_t bell_tag = 1;

[[nodiscard]] constexpr std::uint64_t tag_of(LinkId id) noexcept {
    return id.index | std::uint64_t{id.generation} << 32;
}
[[nodiscard]] constexpr LinkId link_of(std::uint64_t tag) noexcept {
    return {static_cast<std::uint32_t>(tag), static_cast<std::uint32_t>(tag >> 32)};
}

}  // namespace railmux::transports::shm

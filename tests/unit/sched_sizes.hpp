// Sizes of messages and speeds of rails, for the tests of the scheduler.
#pragma once

#include <cstdint>

namespace railmux::test {

inline constexpr std::uint64_t kib = 1024;
inline constexpr std::uint64_t mib = 1024 * kib;
inline constexpr std::uint64_t mbit = 1'000'000;  // per second

}  // namespace railmux::test

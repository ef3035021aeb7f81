// Evictions: how often the kernel has taken the calling thread off its processor though it had work to do. A yield counts,
// too, where another thread wanted the processor.
//
// Threads: any; each has a count of its own.
// Lifetime: none.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace railmux::base {

/// A system call; 0 where the kernel does not tell.
[[nodiscard]] inline std::uint64_t evictions() noexcept {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return static_cast<std::uint64_t>(usage.ru_nivcsw);
}

}  // namespace railmux::base

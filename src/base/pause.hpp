// pause: what a loop does that waits for another processor to write something.
//
// Threads: any.
// Lifetime: none.
#pragma once

namespace railmux::base {

/// A few dozen cycles, or some hundred, in which the processor does nothing in advance.
inline void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");  // `yield` does nothing on most
#endif
}

}  // namespace railmux::base

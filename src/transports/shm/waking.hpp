// Waking: how a process that sleeps is woken by one that shares memory with it, and only then.
//
// Who is about to sleep says so (Side::sleep), looks at everything once more, and sleeps on an eventfd. Who has written
// something that the other may wait for looks whether it sleeps, and if so takes the word back and rings the eventfd. No
// wake-up is lost if both do first the one, then the other, and each sees what the other did first: a store has to be visible
// before a load that follows it, which no processor gives for nothing.
//
//     sleeper                          sender
//     1. sleep = until_news            1. the slot is full
//     2. *fence*                       2. *fence*
//     3. a slot? then do not sleep     3. sleep != awake? then sleep = awake, ring
//
// The sender would pay for its fence with every message (as long as a line takes to come over), the sleeper only before it
// sleeps. So the sleeper makes both: membarrier(2) runs a fence on every core where a process of those registered runs, at
// whatever point that one is. Where the kernel does not have it, or a container forbids it, the sender's store is a fence of
// its own; both sides tell at set-up (strict). tests/unit/transports_shm_waking_test.cpp tries every order of these steps.
//
// The same holds with `taken` in place of the slot, and a sleeper that waits for room.
//
// Threads: pure functions, but for the process-wide registration.
// Lifetime: none.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "transports/shm/block.hpp"

namespace railmux::transports::shm {

/// Lets others fence this process. False where that cannot be had: links of this process are strict.
[[nodiscard]] inline bool register_for_fences() noexcept {
    return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/// A fence here and in every process that is registered.
inline void fence_everyone() noexcept { ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

inline void say_asleep(Side& own, Sleep until) noexcept {
    own.sleep.store(static_cast<std::uint32_t>(until), std::memory_order_seq_cst);
}
inline void say_awake(Side& own) noexcept {
    own.sleep.store(static_cast<std::uint32_t>(Sleep::awake), std::memory_order_relaxed);
}

/// Whether the other side has to be woken for something that was published just now. If so, it counts as awake from here on.
[[nodiscard]] inline bool must_wake(Side& other, Sleep what) noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const auto sleep = other.sleep.load(std::memory_order_seq_cst);
    if (sleep < static_cast<std::uint32_t>(what)) [[likely]]
        return false;
    say_awake(other);
    return true;
}

}  // namespace railmux::transports::shm

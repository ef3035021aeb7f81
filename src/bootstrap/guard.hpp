// Guard: a process beside the launcher that cleans up when the launcher is killed without a chance to: it ends the
// groups of the job's processes and removes the job's files. (The kernel's parent-death signal reaches the launcher's
// children only, not what those have started.)
//
// Threads: one thread; made before the process has others.
// Lifetime: its destructor dismisses the guard, which then does nothing.
#pragma once

#include <sys/types.h>

#include <functional>

#include "base/file_descriptor.hpp"

namespace railmux::bootstrap {

class Guard {
public:
    /// Throws Error(system). What is opened later is not held open by the guard. `clean_up` removes files; it is called in the
    /// guard's process, which has what was in memory when it was made.
    explicit Guard(const std::function<void()>& clean_up);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

    /// Puts a process group under its care, or takes it out before its number may become another's.
    void watch(pid_t group) noexcept { tell(group); }
    void forget(pid_t group) noexcept { tell(-group); }

private:
    void tell(pid_t word) noexcept;

    base::FileDescriptor line_;  // its end tells the guard of ours
    pid_t pid_ = -1;
};

}  // namespace railmux::bootstrap

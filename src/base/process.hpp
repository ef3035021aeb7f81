// Process: another process, and whether it has ended. Once found it is held by a descriptor (pidfd): its number may be given
// to a later one, which is not taken for it. Where there can be none (an old kernel, a sandbox, no descriptor left), its
// number is asked for, which misses an end when somebody else has the number by then, or nobody has waited for it yet.
//
// Threads: a value; one thread at a time per object.
// Lifetime: holds a descriptor, if it can.
#pragma once

#include <sys/types.h>

#include "base/file_descriptor.hpp"

namespace railmux::base {

class Process {
public:
    Process() noexcept = default;
    /// The one that has that number now. One of another process namespace has a number that means nothing here: only who is
    /// alive now can be known to end later.
    explicit Process(pid_t number) noexcept;

    /// False: there was none, and nothing can be told of it.
    [[nodiscard]] bool known() const noexcept { return process_.valid() || by_number_; }
    /// False when it has ended for sure, waited for or not.
    [[nodiscard]] bool alive() const noexcept;
    [[nodiscard]] pid_t number() const noexcept { return number_; }
    /// Turns readable when it ends; -1: there is none.
    [[nodiscard]] int descriptor() const noexcept { return process_.get(); }

private:
    pid_t number_ = 0;
    bool by_number_ = false;
    FileDescriptor process_;
};

}  // namespace railmux::base

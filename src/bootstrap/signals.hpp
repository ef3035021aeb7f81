// Signals: the launcher's signals as something to read, for as long as the object lives. A signal that was ignored when
// we started stays so (nohup), for us and for the processes we start.
//
// Threads: one thread, the process's only one.
// Lifetime: restores what it changed.
#pragma once

#include <csignal>
#include <optional>

#include "base/file_descriptor.hpp"

namespace railmux::bootstrap {

class Signals {
public:
    /// Throws Error(system).
    Signals();
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    [[nodiscard]] int descriptor() const noexcept { return fd_.get(); }
    /// The next one that has come: SIGCHLD, SIGINT, SIGTERM or SIGHUP.
    [[nodiscard]] std::optional<int> next() noexcept;

private:
    base::FileDescriptor fd_;
    sigset_t old_mask_{};
    struct sigaction old_child_ {};
    struct sigaction old_pipe_ {};
};

}  // namespace railmux::bootstrap

// Child: one process of a job: started, signalled, its output forwarded, its end noticed.
//
// Threads: one thread.
// Lifetime: owns its pipes, not the process; the launcher waits for it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "bootstrap/launch_plan.hpp"
#include "bootstrap/output_stream.hpp"

namespace railmux::bootstrap {

struct Child {
    std::uint32_t rank = 0;
    std::string host;
    pid_t pid = -1;  // also the number of its process group
    bool running = false;
    int status = 0;                // exit status, or the signal that ended it
    bool killed = false;           // by that signal
    unsigned restarts = 0;         // so often it was started anew
    base::FileDescriptor control;  // standard input behind a launch command: see ChildPlan
    OutputStream out;
    OutputStream err;
};

/// Starts the process. Throws Error(system) naming the program when it cannot be executed.
void start(Child& child, const ChildPlan& plan, const std::string& prefix);

/// Sends a signal to the process and everything it started in its group.
void signal_child(Child& child, int signal) noexcept;

/// Takes note of the end of the process, if it has come, and asks what it has left behind in its group to end. The
/// process stays a zombie until bury(), so that its number cannot become anybody else's.
bool take_end(Child& child) noexcept;

/// Ends whatever is left of it. Waits for the process itself.
void bury(Child& child) noexcept;

/// "died of signal 11 (Segmentation fault)" or "ended with exit status 3"; and the exit status a shell would report.
[[nodiscard]] std::string describe_end(const Child& child);
[[nodiscard]] int exit_status(const Child& child) noexcept;

}  // namespace railmux::bootstrap

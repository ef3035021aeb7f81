// The launcher behind `railmux run`: starts the processes of a job, tells them about each other, forwards their output
// and signals, and ends the job when one of them dies.
//
// Threads: one thread; it owns the process's SIGCHLD, SIGINT, SIGTERM, SIGHUP and SIGPIPE while it runs.
// Lifetime: returns when every process it started has ended.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/values.hpp"

namespace railmux::bootstrap {

struct RunOptions {
    unsigned processes = 1;
    /// Hosts, in turn, each as NAME or NAME:SLOTS. Empty: all on this host.
    std::vector<std::string> hosts;
    /// Command in front of the program for each host, {host} replaced, e.g. "ip netns exec {host}". Empty: started
    /// directly on this host, by ssh on others. The command must hand its standard input on: the job's key and signals
    /// come by it.
    std::string launch;
    /// Where processes of other hosts find the job: the first one that is free here.
    base::PortRange ports{};
    /// Further environment variables to hand over (their names); RAILMUX_* always are.
    std::vector<std::string> environment;
    std::chrono::seconds timeout{0};        // for the whole job; 0: none
    std::chrono::milliseconds grace{3000};  // between asking processes to end and ending them
    bool prefix = true;                     // "[rank] " in front of each line of output
    std::vector<std::string> command;       // program and arguments
};

/// Runs the job. Returns 0 when all processes ended well, otherwise the exit status of the first that did not (128 +
/// signal for one that was killed; 124 when the time was over). Throws Error when the job cannot be started; nothing
/// runs then.
[[nodiscard]] int run_job(const RunOptions& options);

}  // namespace railmux::bootstrap

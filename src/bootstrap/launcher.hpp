// The launcher behind `railmux run`: starts the processes of a job, tells them about each other, forwards their output
// and signals, and ends the job when one of them dies, or starts that one anew. Further launchers may join a job that has a
// name: they start processes of their own in it, and the job's first launcher serves those, too.
//
// Threads: one thread; it owns the process's SIGCHLD, SIGINT, SIGTERM, SIGHUP and SIGPIPE while it runs.
// Lifetime: returns when every process it started has ended.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
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
    std::string name;                       // of a job that others may join; empty: nobody
    std::string join;                   // the job to join: its name, or the path of its file. Empty: a job of our own
    std::optional<std::uint32_t> rank;  // the rank to take in it, of a process that has ended; else new ones
    unsigned restarts = 0;              // so often a process that fails is started anew, under its rank
    bool keep_going = false;            // one that fails for good does not end the others
    std::vector<std::string> command;   // program and arguments
};

/// Runs the job. Returns 0 when all processes ended well, otherwise the exit status of the first that did not, and was not
/// started anew (128 + signal for one that was killed; 124 when the time was over). Throws Error when the job cannot be
/// started or joined; nothing runs then.
[[nodiscard]] int run_job(const RunOptions& options);

}  // namespace railmux::bootstrap

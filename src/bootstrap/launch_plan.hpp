// How each process of a job is started: on which host, by which command, with which environment and input.
//
// Threads: pure functions but for reading this process's environment and folder.
// Lifetime: values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bootstrap/job_file.hpp"
#include "bootstrap/launcher.hpp"

namespace railmux::bootstrap {

struct ChildPlan {
    std::vector<std::string> command;
    std::vector<std::string> environment;  // "NAME=value", added to ours
    /// Started by a launch command: the key goes to its standard input, and so do the names of signals, one a line,
    /// because signals to an ssh here do not reach the process there.
    bool by_launch_command = false;
    std::string input;
};

/// The host of each process: in turn, each as often in a row as it has slots; empty for this host when none are given.
/// Throws Error(invalid_argument).
[[nodiscard]] std::vector<std::string> place_ranks(const RunOptions& options);

[[nodiscard]] ChildPlan plan_child(const RunOptions& options, const JobIdentity& job, std::uint32_t rank,
                                   const std::string& host);

/// The full path of a program, or empty when there is none.
[[nodiscard]] std::string find_program(const std::string& name);

}  // namespace railmux::bootstrap

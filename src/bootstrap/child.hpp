// Child: one process of a job: started, its output read line by line, its end noticed.
//
// Threads: one thread.
// Lifetime: owns its pipes, not the process; the launcher waits for it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"

namespace railmux::bootstrap {

struct ChildPlan {
    std::vector<std::string> command;
    std::vector<std::string> environment;  // "NAME=value", added to ours
    std::string input;                     // written to its standard input, which then ends
};

/// A stream of a child's output, cut into lines.
class OutputStream {
public:
    OutputStream() = default;
    OutputStream(base::FileDescriptor from, int to, std::string prefix)
        : from_(std::move(from)), to_(to), prefix_(std::move(prefix)) {}

    [[nodiscard]] int descriptor() const noexcept { return from_.get(); }
    [[nodiscard]] bool open() const noexcept { return from_.valid(); }
    /// Passes on what has come; whole lines only, unless a line is very long or the stream has ended.
    void forward();

private:
    void write_lines(bool all);

    base::FileDescriptor from_;
    int to_ = -1;
    std::string prefix_;
    std::string pending_;
};

struct Child {
    std::uint32_t rank = 0;
    std::string host;
    pid_t pid = -1;
    bool running = false;
    int status = 0;  // as waitpid tells
    OutputStream out;
    OutputStream err;
};

/// Starts the process. Throws Error(system) naming the program when it cannot be executed.
void start(Child& child, const ChildPlan& plan, bool prefix);

/// Sends a signal to the process and everything it started in its group.
void signal_child(const Child& child, int signal) noexcept;

/// The full path of a program, or empty when there is none.
[[nodiscard]] std::string find_program(const std::string& name);

}  // namespace railmux::bootstrap

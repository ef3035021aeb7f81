// A launcher in a process of its own, as `railmux run` is one, whose output and end a test can watch.
//
// Threads: one thread.
// Lifetime: kills the launcher if it is still there.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/launcher.hpp"

namespace railmux::bootstrap::test {

/// A job of `processes` that run a script of /bin/sh.
[[nodiscard]] RunOptions script(unsigned processes, const std::string& text);

/// What the launcher's process exits with when run_job throws; the error's text is then on its standard error.
inline constexpr int threw = 99;

class Run {
public:
    explicit Run(const RunOptions& options);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    [[nodiscard]] pid_t pid() const noexcept { return pid_; }
    [[nodiscard]] const std::string& out() const noexcept { return out_; }
    [[nodiscard]] const std::string& err() const noexcept { return err_; }
    [[nodiscard]] std::vector<std::string> lines() const;

    /// Reads until the standard output has that text so many times; false after 30 s or at its end.
    [[nodiscard]] bool wait_for(std::string_view text, std::size_t times = 1);
    /// Reads to the end of both streams; the exit status, 128 + signal for a launcher that was killed, -1 after 30 s.
    int finish();
    /// Stops reading standard output.
    void close_output() { out_pipe_.reset(); }

private:
    [[nodiscard]] bool read_some(base::Nanoseconds deadline);

    pid_t pid_ = -1;
    base::FileDescriptor out_pipe_;
    base::FileDescriptor err_pipe_;
    std::string out_;
    std::string err_;
};

/// Waits until it holds; false after 30 s.
[[nodiscard]] bool eventually(const std::function<bool()>& holds);

/// Whether the process is there and more than a zombie.
[[nodiscard]] bool lives(pid_t pid);

}  // namespace railmux::bootstrap::test

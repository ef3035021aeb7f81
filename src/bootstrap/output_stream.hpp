// OutputStream: one stream of a process's output on its way to ours, cut into lines, so that those of several processes
// do not run into each other.
//
// Threads: one thread.
// Lifetime: owns the reading end; `to` is the launcher's own.
#pragma once

#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"

namespace railmux::bootstrap {

/// Writes all of it, waiting where it must. False when nobody reads there any more.
bool write_all(int to, std::string_view text);

class OutputStream {
public:
    OutputStream() = default;
    OutputStream(base::FileDescriptor from, int to, std::string prefix)
        : from_(std::move(from)), to_(to), prefix_(std::move(prefix)) {}

    [[nodiscard]] int descriptor() const noexcept { return from_.get(); }
    [[nodiscard]] bool open() const noexcept { return from_.valid(); }

    /// Passes on what has come, once `descriptor` is readable: whole lines, unless one is longer than 64 KiB or the
    /// stream has ended. When nobody reads our output, the stream closes: the process learns of it as in any pipe.
    void forward();
    /// Passes on what is left of the last line, and closes.
    void finish();

private:
    [[nodiscard]] std::string take_lines(bool all);

    base::FileDescriptor from_;
    int to_ = -1;
    std::string prefix_;  // empty: output is passed on as it is, cut at line ends only
    std::string pending_;
};

}  // namespace railmux::bootstrap

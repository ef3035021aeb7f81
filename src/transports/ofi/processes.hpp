// Processes: of those that this one shares memory with, which have died. Whoever dies within libfabric's shm (1.17) holds its
// locks for good: its memory is better left alone.
//
// Threads and lifetime: part of its rail.
#pragma once

#include <csignal>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <set>

namespace railmux::transports::ofi {

class Processes {
public:
    /// Those of another namespace have numbers that mean nothing here: only who was seen alive can have died.
    [[nodiscard]] bool died(std::uint32_t process) {
        if (process == 0) return false;
        if (::kill(static_cast<pid_t>(process), 0) != 0 && errno == ESRCH) return seen_.contains(process);
        if (seen_.size() >= most) seen_.erase(seen_.begin());
        seen_.insert(process);
        return false;
    }

private:
    static constexpr std::size_t most = 4096;  // the least number is the oldest, mostly
    std::set<std::uint32_t> seen_;
};

}  // namespace railmux::transports::ofi

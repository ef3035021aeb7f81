// JobFile: how further launchers find a job: a file of this user alone that names the job, its key and where its server is,
// for as long as the job runs. It may be copied to other hosts; whoever has it may join.
//
// Threads: one thread.
// Lifetime: the file goes with the object. A launcher that is killed leaves it: the next job of that name takes its place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/private_folder.hpp"

namespace railmux::bootstrap {

/// What a process must know of its job besides its rank.
struct JobIdentity {
    std::string id;
    std::string key;
    std::string servers;     // for RAILMUX_JOB_SERVER
    std::uint32_t size = 1;  // now; not in the file
};

class JobFile {
public:
    /// The file that a job of that name has. Throws Error(invalid_argument) when that is no name.
    [[nodiscard]] static std::string path(std::string_view name);

    /// Writes it. Throws Error(invalid_argument): there is such a job already; Error(permission, system): it cannot be written.
    JobFile(const std::string& name, const JobIdentity& job);
    ~JobFile() { folder_.give_up(name_, claimed_); }
    JobFile(const JobFile&) = delete;
    JobFile& operator=(const JobFile&) = delete;

    /// Removes the file that a launcher left which was killed, unless it is another job's by now.
    static void remove_leftover(const std::string& name, std::string_view id) noexcept;

    /// The job of that name, or whose file has that path, which has a slash. Throws Error(invalid_argument, permission, system,
    /// invalid_config).
    [[nodiscard]] static JobIdentity read(const std::string& name);

private:
    base::PrivateFolder folder_;
    std::string name_;
    base::FileDescriptor claimed_;
};

}  // namespace railmux::bootstrap

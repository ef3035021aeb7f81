// RunningJob: a job as a launcher sees it: which ranks its processes have, what they must know, and the job's server, which is
// its own, or that of the launcher whose job it joined.
//
// Threads: one thread.
// Lifetime: owns the server or the connection to it, and the job's files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "bootstrap/job_file.hpp"
#include "bootstrap/launcher.hpp"

namespace railmux::bootstrap {

class RunningJob {
public:
    RunningJob() = default;
    virtual ~RunningJob() = default;
    RunningJob(const RunningJob&) = delete;
    RunningJob& operator=(const RunningJob&) = delete;

    /// Removes its files, if the launcher was killed; by the guard, whose copy of this has not been opened.
    virtual void clean_up() const noexcept = 0;
    /// Begins; the first rank of this launcher's processes. Throws Error.
    virtual std::uint32_t open() = 0;
    /// Once it is open; its size is that of now.
    [[nodiscard]] virtual const JobIdentity& identity() const = 0;
    /// Turns readable when serve has something to do; -1 when it never will.
    [[nodiscard]] virtual int descriptor() const = 0;
    /// Tells processes about each other. False when the job was ended elsewhere.
    [[nodiscard]] virtual bool serve() = 0;
    /// A process of ours has ended: why no other one may be started under its rank; empty if one may, and is. Throws Error
    /// when nobody answers.
    [[nodiscard]] virtual std::string claim(std::uint32_t rank) = 0;
    /// ... and none is.
    virtual void ended(std::uint32_t rank) = 0;
    /// The job is being ended here: its other launchers are told.
    virtual void end() = 0;
};

/// A job of its own, or the one to be joined. Nothing is open yet.
[[nodiscard]] std::unique_ptr<RunningJob> make_job(const RunOptions& options, base::Logger& log);

}  // namespace railmux::bootstrap

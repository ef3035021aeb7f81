// SpareDescriptor: one descriptor that is kept for when there are no others, so that connections which nobody can take do not
// wait in front of a listener for ever, and keep it readable.
//
// Threads: one at a time.
// Lifetime: owns its descriptor; refers to its log.
#pragma once

#include <string>

#include "base/file_descriptor.hpp"
#include "base/log.hpp"

namespace railmux::base {

class SpareDescriptor {
public:
    /// `whose` stands in front of what is logged.
    SpareDescriptor(std::string whose, Logger& log);
    /// After an accept that has failed, with its errno: if that was for want of descriptors, closes the connection that waits
    /// first, and says so once. False: nobody need wait there.
    bool turn_away(int listener) noexcept;
    /// One was taken: there are descriptors again.
    void taken() noexcept { said_ = false; }

private:
    std::string whose_;
    Logger& log_;
    FileDescriptor spare_;
    bool said_ = false;
};

}  // namespace railmux::base

// SpareDescriptor: one descriptor that is kept for when there are no others, so that connections which nobody can take do not
// wait in front of a listener for ever, and keep it readable.
//
// Threads: one at a time.
// Lifetime: owns its descriptor.
#pragma once

#include "base/file_descriptor.hpp"

namespace railmux::base {

class SpareDescriptor {
public:
    SpareDescriptor() noexcept;
    /// Whether an accept that failed with this errno failed for want of descriptors.
    [[nodiscard]] static bool wanted(int error) noexcept;
    /// Closes the connection that waits first at this listener. False: it could not be taken this way either.
    bool turn_away(int listener) noexcept;

private:
    FileDescriptor spare_;
};

}  // namespace railmux::base

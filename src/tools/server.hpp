// The passive side of a measurement: obeys orders until told to finish.
//
// Threads: one thread, the one that uses the context.
// Lifetime: only refers to the context.
#pragma once

#include <railmux/context.hpp>

#include "tools/buffers.hpp"

namespace railmux::tools {

/// The memory of both directions. It must outlive the context: an operation cut short by an error may still use it.
struct Workspace {
    Buffers outgoing;
    Buffers incoming;
};

/// Serves one driver to its end. True when all that it sent was right. Throws Error when it is lost or breaks the
/// rules.
[[nodiscard]] bool serve(Context& context, Peer driver, Workspace& workspace);

}  // namespace railmux::tools

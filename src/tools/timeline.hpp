// A trace as a timeline for chrome://tracing or ui.perfetto.dev: a group for each process, a row for each rail.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <ostream>
#include <span>

#include "trace/reader.hpp"

namespace railmux::tools {

/// A bar lasts from the rail's last delivery, or the hand-over if that was later, to the delivery: rows show what a rail was
/// busy with. Frames that are known to have arrived only by the same acknowledgement share the time before it. Files of
/// several hosts are laid side by side by their wall clocks.
void write_timeline(std::ostream& to, std::span<const trace::Trace> traces);

}  // namespace railmux::tools

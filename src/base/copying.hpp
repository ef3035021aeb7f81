// What copying memory costs here.
//
// Threads: any.
// Lifetime: none.
#pragma once

namespace railmux::base {

/// Nanoseconds a byte: of 256 KiB, which the caches of a core hold, as they do what an application has just made. Takes some
/// hundred microseconds.
[[nodiscard]] double measure_copying();

}  // namespace railmux::base

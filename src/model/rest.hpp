// How long a link rests before its caches count as cold: for the Prober, which rests, and for what is made of its samples.
//
// Threads: a constant.
// Lifetime: none.
#pragma once

#include "base/clock.hpp"

namespace railmux::model {

/// What a process does not look at for so long leaves its caches, perhaps.
inline constexpr base::Nanoseconds cold_after = 200 * base::microsecond;

}  // namespace railmux::model

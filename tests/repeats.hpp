// How often a test repeats what shows its point only by number: statistics, and what is tried at each step of something.
// Faults of memory or of threads are no matter of number: instrumented, which takes ten times as long, a few runs show as many
// as all of them.
#pragma once

namespace railmux::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int thinned = 5;
#else
inline constexpr int thinned = 1;
#endif

constexpr int repeats(int all) { return all / thinned; }

/// The distance of the steps that are tried where all would be tried at this one.
constexpr int each(int distance) { return distance * thinned; }

}  // namespace railmux::test

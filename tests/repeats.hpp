// How often a test repeats what shows its point only by number: statistics, not faults of memory or of threads, of which
// instrumented a few runs show as many as all of them, and take ten times as long.
#pragma once

namespace railmux::test {

constexpr int repeats(int all) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return all / 5;
#else
    return all;
#endif
}

}  // namespace railmux::test

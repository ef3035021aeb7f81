// Plays schedules (session_schedule.hpp) from seeds: session_schedules [COUNT [FIRST_SEED]]. Says how many a second, and of the
// first that goes wrong its seed and what was wrong; exit code 1 then.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "fuzz/session_schedule.hpp"

int main(int argc, char** argv) {
    const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
    const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    railmux::test::ScheduleStats stats;
    const auto begun = std::chrono::steady_clock::now();
    for (auto seed = first; seed < first + count; ++seed) {
        const auto wrong = railmux::test::play_schedule(railmux::test::Choices(seed), stats);
        if (wrong.empty()) continue;
        std::printf("WRONG: seed %llu: %s\n", static_cast<unsigned long long>(seed), wrong.c_str());
        return 1;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    std::printf(
        "%llu schedules, %.0f a second; %llu frames, %llu sent again, %llu duplicates dropped, %llu links lost, "
        "%llu corrupted\n",
        static_cast<unsigned long long>(count), static_cast<double>(count) / took.count(),
        static_cast<unsigned long long>(stats.frames), static_cast<unsigned long long>(stats.resent),
        static_cast<unsigned long long>(stats.duplicates), static_cast<unsigned long long>(stats.links_lost),
        static_cast<unsigned long long>(stats.corrupted));
    return 0;
}

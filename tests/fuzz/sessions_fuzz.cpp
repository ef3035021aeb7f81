// Schedules whose choices are the fuzzer's bytes (session_schedule.hpp).
#include <cstdint>
#include <cstdio>

#include "fuzz/session_schedule.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
    railmux::test::ScheduleStats stats;
    const auto wrong = railmux::test::play_schedule(railmux::test::Choices(std::span(data, size)), stats);
    if (wrong.empty()) return 0;
    std::fprintf(stderr, "%s\n", wrong.c_str());
    __builtin_trap();
}

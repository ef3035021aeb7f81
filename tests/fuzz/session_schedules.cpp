// Plays schedules (session_schedule.hpp) from seeds: session_schedules [COUNT [FIRST_SEED]]. Says how many a second, and of the
// first that goes wrong its seed and what was wrong; exit code 1 then.
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "fuzz/session_schedule.hpp"

namespace {

// Of one schedule, of CPU time: milliseconds are usual, and that the process was stopped, or others had the cores, is no hang.
constexpr time_t longest_s = 60;

// How what is played now would be told of, if it is the last: a handler has no time to write that.
std::array<char, 64> playing;
std::size_t playing_size = 0;

template <std::size_t size>
void say(const char (&text)[size]) {
    const bool said =
        write(STDOUT_FILENO, playing.data(), playing_size) > 0 && write(STDOUT_FILENO, text, size - 1) > 0;
    _exit(said ? 1 : 2);
}
void on_signal(int signal) {
    if (signal == SIGPROF) say("a minute without end\n");
    say("a wrong way to end (a signal)\n");
}
void end_after(time_t seconds) {
    const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
}
/// Unless somebody tells of it already: a sanitizer, or a debugger.
void tell_of(int signal) {
    struct sigaction before {};
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
    std::signal(signal, &on_signal);
}

}  // namespace

int main(int argc, char** argv) {
    const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
    const std::uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    for (const int signal : {SIGPROF, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) tell_of(signal);
    railmux::test::ScheduleStats stats;
    const auto begun = std::chrono::steady_clock::now();
    for (auto seed = first; seed < first + count; ++seed) {
        playing_size = static_cast<std::size_t>(
            std::snprintf(playing.data(), playing.size(), "WRONG: seed %llu: ", static_cast<unsigned long long>(seed)));
        end_after(longest_s);
        const auto wrong = railmux::test::play_schedule(railmux::test::Choices(seed), stats);
        if (wrong.empty()) continue;
        std::printf("%s%s\n", playing.data(), wrong.c_str());
        return 1;
    }
    end_after(0);
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

// THREADS [SECONDS [BYTES [WINDOW]]]: threads of one process that all send messages to the process itself and receive them,
// WINDOW at once, each by a tag (MPI: a communicator) of its own; how many of them all do in a second. Both ends of a message
// are the same thread, so that nobody waits for another: what two do less than one is what the library loses to sharing. What
// that is beside a context for each thread, which MPI has not, shared_context tells.
//
// The program is the same for whatever carries the messages (threads.cpp: railmux, threads_mpi.cpp: MPI). That is a class that
// lets several threads in, with a class Thread of what one of them has: start_send, start_receive, and wait for all started.
//
// Threads: of `run`, as many as it is told to start.
// Lifetime: functions.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <thread>
#include <vector>

namespace threads {

using Clock = std::chrono::steady_clock;

struct Options {
    unsigned threads = 1;
    std::chrono::duration<double> time{1};
    std::size_t bytes = 8;
    std::size_t window = 1;
};

inline Options parse(int count, char** arguments) {
    if (count < 2 || count > 5) {
        std::fprintf(stderr, "usage: threads THREADS [SECONDS [BYTES [WINDOW]]]\n");
        std::exit(2);
    }
    Options options{static_cast<unsigned>(std::strtoul(arguments[1], nullptr, 10))};
    if (count > 2) options.time = std::chrono::duration<double>(std::atof(arguments[2]));
    if (count > 3) options.bytes = std::strtoull(arguments[3], nullptr, 10);
    if (count > 4) options.window = std::strtoull(arguments[4], nullptr, 10);
    return options;
}

/// Until the time is over. Returns how many messages were received.
template <typename Thread>
std::uint64_t exchange(Thread& thread, const Options& options, Clock::time_point stop) {
    constexpr int between_looks = 16;  // at the clock, in windows
    std::vector<std::byte> out(options.bytes);
    std::vector<std::byte> in(options.bytes * options.window);
    std::uint64_t windows = 0;
    for (; windows % between_looks != 0 || Clock::now() < stop; ++windows) {
        for (std::size_t i = 0; i < options.window; ++i)
            thread.start_receive(std::span(in).subspan(i * options.bytes, options.bytes));
        for (std::size_t i = 0; i < options.window; ++i) thread.start_send(out);
        thread.wait();
    }
    return windows * options.window;
}

/// Prints the messages per second of all threads together, as JSON.
template <typename Messages>
void run(Messages& messages, const Options& options) {
    std::vector<typename Messages::Thread> of_thread;
    for (unsigned t = 0; t < options.threads; ++t) of_thread.push_back(messages.thread(t));
    for (auto& thread : of_thread) exchange(thread, options, Clock::now() + std::chrono::milliseconds(100));  // warm
    std::atomic<std::uint64_t> received{0};
    std::vector<std::thread> running;
    const auto begun = Clock::now();
    const auto stop = begun + std::chrono::duration_cast<Clock::duration>(options.time);
    for (auto& thread : of_thread) running.emplace_back([&] { received += exchange(thread, options, stop); });
    for (auto& thread : running) thread.join();
    const std::chrono::duration<double> took = Clock::now() - begun;
    std::printf("{\"messages_per_s\":%.0f}\n", static_cast<double>(received.load()) / took.count());
}

}  // namespace threads

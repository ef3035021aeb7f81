// Coroutines: each worker of the master is a conversation that reads as if it waited, and all of them go on in one thread.
//
//   railmux run -n 4 example_coroutines
//
// The work: counting the primes below a million, piece by piece, as in master_worker.cpp.
#include <railmux/coroutine.hpp>

#include <cstdint>
#include <exception>
#include <iostream>

#include "example.hpp"

namespace {

constexpr railmux::Tag piece_tag = 1;  // master to worker: first number of a piece; `limit` means go home
constexpr railmux::Tag found_tag = 2;  // worker to master: primes found there
constexpr std::uint64_t limit = 1'000'000;
constexpr std::uint64_t piece = 10'000;
constexpr std::uint64_t known_answer = 78'498;

/// A coroutine that starts at once and that nobody awaits. Real programs have a better one.
struct Task {
    struct promise_type {
        Task get_return_object() { return {}; }
        std::suspend_never initial_suspend() noexcept { return {}; }
        std::suspend_never final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
};

std::span<std::byte> bytes(std::uint64_t& number) { return std::as_writable_bytes(std::span(&number, 1)); }

struct Master {
    railmux::Context& context;
    std::uint64_t next = 0;
    std::uint64_t primes = 0;
    std::uint32_t at_work = 0;
    bool failed = false;

    /// All that is said to one worker.
    Task employ(railmux::Peer worker) {
        ++at_work;
        for (bool home = false; !home;) {
            std::uint64_t first = next;
            home = first >= limit;
            if (!home) next += piece;
            const auto sent = co_await railmux::async_send(context, worker, piece_tag, bytes(first));
            failed = failed || !sent.ok();
            if (home || failed) break;
            std::uint64_t found = 0;
            const auto received = co_await railmux::async_recv(context, worker, found_tag, bytes(found));
            failed = failed || !received.ok();
            primes += found;
        }
        --at_work;
    }
};

bool is_prime(std::uint64_t n) {
    if (n < 2) return false;
    for (std::uint64_t d = 2; d * d <= n; ++d) {
        if (n % d == 0) return false;
    }
    return true;
}

void run_worker(railmux::Context& context) {
    const auto master = context.peer(0);
    for (;;) {
        std::uint64_t first = limit;
        context.recv(master, piece_tag, bytes(first));
        if (first >= limit) return;
        std::uint64_t found = 0;
        for (auto n = first; n < first + piece; ++n) found += is_prime(n) ? 1 : 0;
        context.send(master, found_tag, bytes(found));
    }
}

int run(railmux::Context& context) {
    if (context.size() < 2) {
        std::cerr << "usage: railmux run -n 4 example_coroutines (at least 2)\n";
        return 2;
    }
    if (context.rank() != 0) {
        run_worker(context);
        return 0;
    }
    Master master{context};
    for (std::uint32_t rank = 1; rank < context.size(); ++rank) master.employ(context.peer(rank));
    while (master.at_work > 0) context.progress();
    std::cout << master.primes << " primes below " << limit << '\n';
    return !master.failed && master.primes == known_answer ? 0 : 1;
}

}  // namespace

int main() { return run_example(run); }

// A master hands out pieces of work to whichever worker is free, by receiving from any source.
//
//   railmux run -n 4 example_master_worker
//
// The work: counting the primes below a million, piece by piece.
#include <railmux/context.hpp>

#include <cstdint>
#include <iostream>

#include "example.hpp"

namespace {

constexpr railmux::Tag ready_tag = 1;  // worker to master: primes found in the last piece; the first time 0
constexpr railmux::Tag piece_tag = 2;  // master to worker: first number of a piece; `limit` means go home
constexpr std::uint64_t limit = 1'000'000;
constexpr std::uint64_t piece = 10'000;
constexpr std::uint64_t known_answer = 78'498;

std::span<std::byte> bytes(std::uint64_t& number) { return std::as_writable_bytes(std::span(&number, 1)); }

bool is_prime(std::uint64_t n) {
    if (n < 2) return false;
    for (std::uint64_t d = 2; d * d <= n; ++d) {
        if (n % d == 0) return false;
    }
    return true;
}

std::uint64_t run_master(railmux::Context& context) {
    std::uint64_t next = 0;
    std::uint64_t primes = 0;
    auto at_work = context.size() - 1;
    while (at_work > 0) {
        std::uint64_t found = 0;
        const auto status = context.recv(railmux::any_source, ready_tag, bytes(found));
        primes += found;
        std::uint64_t first = next;
        context.send(status.peer, piece_tag, bytes(first));
        if (next < limit) {
            next += piece;
        } else {
            --at_work;  // it was sent home
        }
    }
    return primes;
}

void run_worker(railmux::Context& context) {
    const auto master = context.peer(0);
    std::uint64_t found = 0;
    for (;;) {
        context.send(master, ready_tag, bytes(found));
        std::uint64_t first = limit;
        context.recv(master, piece_tag, bytes(first));
        if (first >= limit) return;
        found = 0;
        for (auto n = first; n < first + piece; ++n) found += is_prime(n) ? 1 : 0;
    }
}

int run(railmux::Context& context) {
    if (context.size() < 2) {
        std::cerr << "usage: railmux run -n 4 example_master_worker (at least 2)\n";
        return 2;
    }
    if (context.rank() != 0) {
        run_worker(context);
        return 0;
    }
    const auto primes = run_master(context);
    std::cout << primes << " primes below " << limit << '\n';
    return primes == known_answer ? 0 : 1;
}

}  // namespace

int main() { return run_example(run); }

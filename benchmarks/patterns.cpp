// patterns PATTERN ITERATIONS: one process of a job that exchanges messages by a pattern, and what that took.
//
//   ring      a token of 8 bytes goes round; one iteration is one lap
//   alltoall  1 KiB from everybody to everybody
//   halo      computes for 50 us, then swaps 4 KiB with both neighbours
//   compute   rank 0 sends rank 1 messages of 256 KiB, which both await while they compute for 1 ms in between
//   latency4, latency4096   ping-pong of ranks 0 and 1, 4 bytes or 4 KiB
//
// Rank 0 prints, as JSON, the wall time in us per iteration and the CPU time of all processes in us per iteration.
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <railmux/context.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using railmux::Context;
using railmux::Peer;
using railmux::Request;

constexpr railmux::Tag tag = 1;
constexpr railmux::Tag barrier_tag = 2;
constexpr railmux::Tag result_tag = 3;

double cpu_us() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto micros = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
    };
    return micros(usage.ru_utime) + micros(usage.ru_stime);
}

/// So much of this thread's own CPU time: others may have the core in between.
void compute(std::chrono::microseconds time) {
    timespec now{};
    const auto read = [&] {
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return now.tv_sec * 1'000'000'000L + now.tv_nsec;
    };
    for (const auto end = read() + time.count() * 1000; read() < end;) continue;
}

struct Process {
    Context context;
    std::uint32_t rank = context.rank();
    std::uint32_t size = context.size();
    std::vector<std::byte> out = std::vector<std::byte>(256 << 10);
    std::vector<std::vector<std::byte>> in{size, std::vector<std::byte>(256 << 10)};
    std::vector<Request> requests;

    Peer at(std::uint32_t offset) { return context.peer((rank + offset) % size); }
    void receive(Peer from, std::size_t bytes) {
        requests.push_back(context.irecv(from, tag, std::span(in[requests.size() % size]).first(bytes)));
    }
    void send(Peer to, std::size_t bytes) { requests.push_back(context.isend(to, tag, std::span(out).first(bytes))); }
    void wait() {
        context.wait_all(requests);
        requests.clear();
    }

    void ring() {
        receive(at(size - 1), 8);
        if (rank != 0) wait();
        context.send(at(1), tag, std::span(out).first(8));
        wait();
    }
    void alltoall() {
        for (std::uint32_t i = 1; i < size; ++i) receive(at(i), 1024);
        for (std::uint32_t i = 1; i < size; ++i) send(at(i), 1024);
        wait();
    }
    void halo() {
        receive(at(1), 4096);
        receive(at(size - 1), 4096);
        compute(std::chrono::microseconds(50));
        send(at(1), 4096);
        send(at(size - 1), 4096);
        wait();
    }
    void overlap() {
        if (rank == 0) send(at(1), 256 << 10);
        if (rank == 1) receive(at(size - 1), 256 << 10);
        compute(std::chrono::milliseconds(1));
        wait();
    }
    void latency(std::size_t bytes) {
        if (rank > 1) return;
        const auto other = context.peer(1 - rank);
        receive(other, bytes);
        if (rank == 1) wait();
        context.send(other, tag, std::span(out).first(bytes));
        if (rank == 0) wait();
    }
    void run(const std::string& pattern) {
        if (pattern == "ring") return ring();
        if (pattern == "alltoall") return alltoall();
        if (pattern == "halo") return halo();
        if (pattern == "compute") return overlap();
        return latency(pattern == "latency4" ? 4 : 4096);
    }

    /// Everybody waits for rank 0, and it for everybody.
    void barrier() {
        std::array<std::byte, 1> byte{};
        for (std::uint32_t i = 1; rank == 0 && i < size; ++i) context.recv(context.peer(i), barrier_tag, byte);
        if (rank != 0) context.send(context.peer(0), barrier_tag, byte);
        if (rank != 0) context.recv(context.peer(0), barrier_tag, byte);
        for (std::uint32_t i = 1; rank == 0 && i < size; ++i) context.send(context.peer(i), barrier_tag, byte);
    }
    /// The sum over all processes, at rank 0.
    double sum(double mine) {
        if (rank != 0) context.send(context.peer(0), result_tag, std::as_bytes(std::span(&mine, 1)));
        for (std::uint32_t i = 1; rank == 0 && i < size; ++i) {
            double other = 0;
            context.recv(context.peer(i), result_tag, std::as_writable_bytes(std::span(&other, 1)));
            mine += other;
        }
        return mine;
    }
};

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    const std::string pattern = arguments[1];
    const int iterations = std::atoi(arguments[2]);
    Process process;
    for (int i = 0; i < iterations / 10 + 10; ++i) process.run(pattern);
    process.barrier();
    const auto cpu = cpu_us();
    const auto begun = Clock::now();
    for (int i = 0; i < iterations; ++i) process.run(pattern);
    const auto wall = std::chrono::duration<double, std::micro>(Clock::now() - begun).count();
    const auto used = cpu_us() - cpu;
    process.barrier();
    const auto all = process.sum(used);
    if (process.rank == 0) std::printf("{\"wall_us\":%.3f,\"cpu_us\":%.3f}\n", wall / iterations, all / iterations);
    process.barrier();
    return 0;
}

// PATTERN ITERATIONS [BYTES [WINDOW]]: one process of a job that exchanges messages by a pattern, and what that took.
//
//   pingpong   ranks 0 and 1: there and back, with blocking calls
//   bandwidth  rank 0 sends rank 1 WINDOW messages at once, from and to as many buffers; one iteration is these and an answer
//   ring       a token of 8 bytes goes round; one iteration is one lap
//   alltoall   1 KiB from everybody to everybody
//   halo       computes for 50 us, then swaps 4 KiB with both neighbours
//   compute    rank 0 sends rank 1 messages of 256 KiB, which both await while they compute for 1 ms in between
//
// Rank 0 prints, as JSON, per iteration: the wall time in us, on average and in the median of 200 parts of the run, and the
// CPU time of all processes in us. When no clock runs any more, one iteration is checked byte by byte.
//
// The program is the same for whatever carries the messages (patterns.cpp: railmux, patterns_mpi.cpp: MPI). That is a class
// with rank(), size(); start_send, start_receive, wait (for all started); send, receive; and a name for its failures.
//
// Threads: one.
// Lifetime: a process makes one Process after its Messages.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string>
#include <vector>

namespace patterns {

using Clock = std::chrono::steady_clock;

inline double cpu_us() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto micros = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
    };
    return micros(usage.ru_utime) + micros(usage.ru_stime);
}

/// So much of this thread's own CPU time: others may have the core in between.
inline void compute(std::chrono::microseconds time) {
    timespec now{};
    const auto read = [&] {
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return now.tv_sec * 1'000'000'000L + now.tv_nsec;
    };
    for (const auto end = read() + time.count() * 1000; read() < end;) continue;
}

/// Room for messages, none of which shares a cache line with another.
class Room {
public:
    Room(std::size_t messages, std::size_t bytes)
        : lines_(std::max<std::size_t>((bytes + sizeof(Line) - 1) / sizeof(Line), 1)), memory_(messages * lines_) {}
    [[nodiscard]] std::span<std::byte> message(std::size_t index, std::size_t bytes) {
        return {memory_[index * lines_].bytes.data(), bytes};
    }
    [[nodiscard]] std::span<std::byte> all() { return {memory_.front().bytes.data(), memory_.size() * sizeof(Line)}; }

private:
    struct alignas(64) Line {
        std::array<std::byte, 64> bytes{};
    };
    std::size_t lines_;
    std::vector<Line> memory_;
};

struct Options {
    std::string pattern;
    int iterations = 0;
    std::size_t bytes = 8;
    std::size_t window = 1;
};

inline Options parse(int count, char** arguments) {
    if (count < 3 || count > 5) std::exit(2);
    Options options{arguments[1], std::atoi(arguments[2])};
    if (count > 3) options.bytes = std::strtoull(arguments[3], nullptr, 10);
    if (count > 4) options.window = std::strtoull(arguments[4], nullptr, 10);
    return options;
}

template <typename Messages>
class Process {
public:
    Process(Messages& messages, const Options& options)
        : messages_(messages), options_(options), out_(slots(), slot_bytes()), in_(slots(), slot_bytes()) {
        std::ranges::fill(out_.all(), content);
    }

    /// The exit code.
    int run() {
        for (int i = 0; i < options_.iterations / 10 + 10; ++i) once();
        barrier();
        const auto cpu = cpu_us();
        const auto wall = measure();
        const auto used = cpu_us() - cpu;
        barrier();
        const auto all = sum(used);
        const bool right = check();
        barrier();
        if (!right) std::fprintf(stderr, "rank %u: not all that was sent arrived\n", rank_);
        if (rank_ == 0 && right) {
            std::printf("{\"wall_us\":%.3f,\"median_us\":%.3f,\"cpu_us\":%.3f}\n", wall.mean, wall.median,
                        all / options_.iterations);
        }
        return right ? 0 : 1;
    }

private:
    static constexpr std::byte content{0x5a};
    static constexpr std::size_t most_fixed = 256 << 10;  // bytes of the patterns whose sizes are fixed
    static constexpr int parts = 200;
    struct Wall {
        double mean = 0;
        double median = 0;
    };

    [[nodiscard]] bool sized() const { return options_.pattern == "pingpong" || options_.pattern == "bandwidth"; }
    [[nodiscard]] std::size_t slots() const { return sized() ? options_.window : messages_.size(); }
    [[nodiscard]] std::size_t slot_bytes() const { return sized() ? options_.bytes : most_fixed; }
    [[nodiscard]] std::uint32_t at(std::uint32_t offset) const { return (rank_ + offset) % size_; }

    void receive(std::uint32_t from, std::size_t bytes) {
        expected_ += bytes;
        messages_.start_receive(from, in_.message(receives_++, bytes));
    }
    void send(std::uint32_t to, std::size_t bytes) { messages_.start_send(to, out_.message(sends_++, bytes)); }
    void wait() {
        messages_.wait();
        receives_ = sends_ = 0;
    }

    void pingpong() {
        if (rank_ > 1) return;
        const auto out = out_.message(0, options_.bytes);
        const auto in = in_.message(0, options_.bytes);
        expected_ += options_.bytes;
        if (rank_ == 0) messages_.send(1, out);
        messages_.receive(1 - rank_, in);
        if (rank_ == 1) messages_.send(0, out);
    }
    void bandwidth() {
        if (rank_ > 1) return;
        for (std::size_t i = 0; i < options_.window; ++i) {
            if (rank_ == 0) send(1, options_.bytes);
            if (rank_ == 1) receive(0, options_.bytes);
        }
        wait();
        if (rank_ == 0) messages_.receive(1, answer_);
        if (rank_ == 1) messages_.send(0, answer_);
    }
    void ring() {
        receive(at(size_ - 1), 8);
        if (rank_ != 0) wait();
        messages_.send(at(1), out_.message(0, 8));
        wait();
    }
    void alltoall() {
        for (std::uint32_t i = 1; i < size_; ++i) receive(at(i), 1024);
        for (std::uint32_t i = 1; i < size_; ++i) send(at(i), 1024);
        wait();
    }
    void halo() {
        receive(at(1), 4096);
        receive(at(size_ - 1), 4096);
        compute(std::chrono::microseconds(50));
        send(at(1), 4096);
        send(at(size_ - 1), 4096);
        wait();
    }
    void overlap() {
        if (rank_ == 0) send(at(1), most_fixed);
        if (rank_ == 1) receive(at(size_ - 1), most_fixed);
        compute(std::chrono::milliseconds(1));
        wait();
    }
    void once() { (this->*pattern_)(); }

    /// Short runs have fewer parts.
    Wall measure() {
        const auto batch = (options_.iterations + parts - 1) / parts;
        const auto batches = options_.iterations / batch;
        std::vector<double> times;
        times.reserve(static_cast<std::size_t>(batches));
        const auto begun = Clock::now();
        auto before = begun;
        for (int i = 0; i < batches; ++i) {
            for (int j = 0; j < batch; ++j) once();
            const auto now = Clock::now();
            times.push_back(std::chrono::duration<double, std::micro>(now - before).count() / batch);
            before = now;
        }
        const auto whole = std::chrono::duration<double, std::micro>(before - begun).count();
        std::ranges::sort(times);
        return {whole / (batches * batch), times[times.size() / 2]};
    }

    /// One more iteration: as many bytes as were expected bear what was sent.
    bool check() {
        std::ranges::fill(in_.all(), std::byte{});
        expected_ = 0;
        barrier();
        once();
        return static_cast<std::size_t>(std::ranges::count(in_.all(), content)) == expected_;
    }
    /// Everybody waits for rank 0, and it for everybody.
    void barrier() {
        for (std::uint32_t i = 1; rank_ == 0 && i < size_; ++i) messages_.receive(i, answer_);
        if (rank_ != 0) messages_.send(0, answer_);
        if (rank_ != 0) messages_.receive(0, answer_);
        for (std::uint32_t i = 1; rank_ == 0 && i < size_; ++i) messages_.send(i, answer_);
    }
    /// The sum over all processes, at rank 0.
    double sum(double mine) {
        if (rank_ != 0) messages_.send(0, std::as_writable_bytes(std::span(&mine, 1)));
        for (std::uint32_t i = 1; rank_ == 0 && i < size_; ++i) {
            double other = 0;
            messages_.receive(i, std::as_writable_bytes(std::span(&other, 1)));
            mine += other;
        }
        return mine;
    }

    using Pattern = void (Process::*)();
    static Pattern named(const std::string& name) {
        if (name == "pingpong") return &Process::pingpong;
        if (name == "bandwidth") return &Process::bandwidth;
        if (name == "ring") return &Process::ring;
        if (name == "alltoall") return &Process::alltoall;
        if (name == "halo") return &Process::halo;
        if (name == "compute") return &Process::overlap;
        std::exit(2);
    }

    Messages& messages_;
    const Options options_;
    const Pattern pattern_ = named(options_.pattern);
    const std::uint32_t rank_ = messages_.rank();
    const std::uint32_t size_ = messages_.size();
    Room out_;
    Room in_;
    std::array<std::byte, 1> answer_{};
    std::size_t receives_ = 0;
    std::size_t sends_ = 0;
    std::size_t expected_ = 0;
};

}  // namespace patterns

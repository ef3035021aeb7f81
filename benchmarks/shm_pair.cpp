// What the shm rail alone does between two processes, without anything above it.
//
//   shm_pair [ITERATIONS]
//
// Prints what no library can be faster than, a cache line that goes to the other process and back; then half round trips of
// frames, the rate of small ones, the bandwidth of puts (fetched and copied), and an empty poll.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "transports/shm/rail.hpp"

using namespace railmux;
using namespace railmux::transports;

namespace {

constexpr std::size_t largest = 4 << 20;
constexpr std::uint64_t window = 64;
constexpr std::array<std::size_t, 8> frame_sizes{8, 56, 64, 256, 512, 1024, 4096, 16384};
constexpr std::array<std::size_t, 4> put_sizes{16384, 65536, 512 << 10, largest};

base::Logger& quiet() {
    static base::Logger log{base::LogLevel::warning};
    return log;
}

/// One end: its rail, its link, and counts of what it reported.
struct End {
    explicit End(const shm::Bulk& bulk) : rail("shm:node", bulk, quiet()), memory(largest, std::byte{1}) {}
    shm::Rail rail;
    std::vector<std::byte> memory;
    LinkId link;
    bool up = false, down = false;
    std::uint64_t received = 0, done = 0, posted = 0;
    std::array<std::byte, sizeof(RegionKey)> last{};
    std::array<Event, 64> events;

    void poll() {
        for (const auto& event : std::span(events).first(rail.poll(events))) {
            switch (event.kind) {
                case EventKind::received:
                    ++received;
                    if (event.data.size() == last.size()) std::ranges::copy(event.data, last.begin());
                    break;
                case EventKind::done: ++done; break;
                case EventKind::connect_request: rail.accept(link = event.link, {}); break;
                case EventKind::link_up: up = true; break;
                case EventKind::link_down: down = true; break;
                default: break;
            }
        }
    }
    /// As those above send frames: without a work where they need no `done`.
    void send_frame(std::size_t bytes) {
        if (bytes > rail.traits().quiet_max) return send({}, bytes);
        while (!down && !rail.send_short(link, std::span(memory).first(bytes), false)) poll();
    }
    void send(Work work, std::size_t bytes) {
        const Segment segment{memory.data(), bytes};
        work.link = link;
        work.segments = {&segment, 1};
        while (!down && rail.post({&work, 1}) == 0) poll();
        ++posted;
    }
    void await(const std::uint64_t& count, std::uint64_t number) {
        while (count < number && !down) poll();
    }
};

/// Answers what measure() asks, in the same order.
void mirror(End& end, std::uint64_t iterations) {
    while (!end.up) end.poll();
    auto region = end.rail.add_region(end.memory, Access::remote_write).take();
    std::uint64_t seen = 0;
    std::vector<std::byte> key(sizeof region.key);
    std::memcpy(key.data(), &region.key, key.size());
    std::ranges::copy(key, end.memory.begin());
    end.send_frame(key.size());
    for (const auto size : frame_sizes) {
        for (std::uint64_t i = 0; i < iterations; ++i) {
            end.await(end.received, ++seen);
            end.send_frame(size);
        }
    }
    end.await(end.received, seen += iterations);
    end.send_frame(0);
    for ([[maybe_unused]] const auto size : put_sizes) {
        end.await(end.received, ++seen);  // behind the puts
        end.send_frame(0);
    }
    end.await(end.received, seen + 1);
}

void measure(End& end, std::uint64_t iterations, const char* name) {
    while (!end.up) end.poll();
    std::uint64_t seen = 1;
    end.await(end.received, seen);
    RegionKey key;
    std::memcpy(&key, end.last.data(), sizeof key);
    for (const auto size : frame_sizes) {
        std::vector<base::Nanoseconds> times;
        for (std::uint64_t i = 0; i < iterations; ++i) {
            const auto begun = base::now_ns();
            end.send_frame(size);
            end.await(end.received, ++seen);
            times.push_back(base::now_ns() - begun);
        }
        std::ranges::sort(times);
        std::printf("%-6s half round trip %8zu B  %8.0f ns (fastest %.0f)\n", name, size,
                    static_cast<double>(times[times.size() / 2]) / 2, static_cast<double>(times.front()) / 2);
    }
    auto begun = base::now_ns();
    for (std::uint64_t i = 0; i < iterations; ++i) end.send_frame(8);
    end.await(end.received, ++seen);
    std::printf("%-6s one way               8 B  %8.1f M/s\n", name,
                static_cast<double>(iterations) * 1e3 / static_cast<double>(base::now_ns() - begun));
    for (const auto size : put_sizes) {
        const auto count = std::max<std::uint64_t>(std::min<std::uint64_t>(iterations, (1ULL << 29) / size), window);
        begun = base::now_ns();
        for (std::uint64_t i = 0; i < count; ++i) {
            end.send({.op = Op::put, .remote = key}, size);
            end.await(end.done, end.posted > window ? end.posted - window : 0);
        }
        end.send_frame(0);
        end.await(end.received, ++seen);
        std::printf("%-6s puts             %8zu B  %8.2f GB/s\n", name, size,
                    static_cast<double>(count * size) / static_cast<double>(base::now_ns() - begun));
    }
    constexpr int polls = 1'000'000;
    begun = base::now_ns();
    for (int i = 0; i < polls; ++i) end.poll();
    std::printf("%-6s empty poll                  %8.1f ns\n", name,
                static_cast<double>(base::now_ns() - begun) / polls);
    end.send_frame(0);
}

/// Half a round trip of nothing but a cache line each way, of another slot each time as in a ring.
void bounce(std::uint64_t iterations) {
    struct alignas(shm::cache_line) Line {
        std::atomic<std::uint64_t> number;
    };
    using Way = std::array<Line, shm::slots>;
    void* const memory = ::mmap(nullptr, 2 * sizeof(Way), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::exit(1);
    auto* const ways = static_cast<Way*>(memory);
    const auto say = [&](int way, std::uint64_t number) {
        ways[way][number % shm::slots].number.store(number, std::memory_order_release);
    };
    const auto hear = [&](int way, std::uint64_t number) {
        while (ways[way][number % shm::slots].number.load(std::memory_order_acquire) != number) continue;
    };
    const auto other = ::fork();
    if (other == 0) {
        for (std::uint64_t i = 1; i <= iterations; ++i) {
            hear(0, i);
            say(1, i);
        }
        ::_exit(0);
    }
    std::vector<base::Nanoseconds> times;
    constexpr std::uint64_t part = 100;  // round trips: reading the clock takes a third of one
    for (std::uint64_t i = 1; i + part <= iterations + 1; i += part) {
        const auto begun = base::now_ns();
        for (auto j = i; j < i + part; ++j) {
            say(0, j);
            hear(1, j);
        }
        times.push_back(base::now_ns() - begun);
    }
    ::kill(other, SIGKILL);  // there may be a part of a part left
    ::waitpid(other, nullptr, 0);
    ::munmap(memory, 2 * sizeof(Way));
    std::ranges::sort(times);
    const auto half = [](base::Nanoseconds time) { return static_cast<double>(time) / (2 * part); };
    if (times.empty()) return;
    std::printf("line   half round trip             %8.0f ns (fastest %.0f)\n", half(times[times.size() / 2]),
                half(times.front()));
}

void run(const shm::Bulk& bulk, std::uint64_t iterations, const char* name) {
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) std::exit(1);
    const auto other = ::fork();
    if (other == 0) {
        End end(bulk);
        const auto address = end.rail.address();
        if (::write(pipe[1], address.data(), address.size()) < 0) ::_exit(1);
        mirror(end, iterations);
        ::_exit(0);
    }
    std::array<std::byte, 256> address;
    const auto got = ::read(pipe[0], address.data(), address.size());
    End end(bulk);
    end.link = end.rail.connect(std::span(address).first(static_cast<std::size_t>(std::max<ssize_t>(got, 0))), {});
    measure(end, iterations, name);
    ::waitpid(other, nullptr, 0);
}

}  // namespace

int main(int count, char** arguments) {
    char* end = nullptr;
    const auto iterations = count > 1 ? std::strtoull(arguments[1], &end, 10) : 10'000;
    if (count > 2 || (count > 1 && (*end != '\0' || iterations == 0 || arguments[1][0] == '-'))) {
        std::fprintf(stderr, "usage: shm_pair [ITERATIONS]\n");
        return 2;
    }
    bounce(iterations);
    run({.fetch_from = shm::least_fetch}, iterations, "fetch");
    run({}, iterations, "copy");
}

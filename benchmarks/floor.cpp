// floor BYTES ITERATIONS: half a round trip between the cores 0 and 1 of what no library can do without: a line that says so,
// which carries up to 56 bytes itself; of more, as many lines of data copied in on one side and out on the other.
//
// Two processes, shared memory, nothing else. Each way has 128 places for the line, as a ring has, and 16 for the data, each in
// front of the last with as much room in between, which is the best that was found (docs/shm-figures.md). Prints JSON as
// patterns does: the median of 200 parts of the run, in us for a round trip.
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t line_bytes = 64;
constexpr std::size_t short_bytes = 56;
constexpr std::size_t lines = 128;
constexpr std::size_t places = 16;
constexpr std::size_t most_bytes = 4096;
constexpr std::uint64_t parts = 200;

struct alignas(line_bytes) Line {
    std::atomic<std::uint64_t> number;
    std::array<std::byte, short_bytes> body;
};

struct alignas(4096) Way {
    std::array<Line, lines> line;
    alignas(4096) std::array<std::byte, 2 * places * most_bytes> data;
};

class End {
public:
    End(Way& out, Way& in, std::size_t bytes) : out_(out), in_(in), bytes_(bytes), memory_(most_bytes, std::byte{1}) {}

    void send() {
        const auto number = ++sent_;
        auto& line = out_.line[number % lines];
        std::memcpy(bytes_ > short_bytes ? place(out_, number) : line.body.data(), memory_.data(), bytes_);
        line.number.store(number, std::memory_order_release);
    }
    void receive() {
        const auto number = ++received_;
        auto& line = in_.line[number % lines];
        while (line.number.load(std::memory_order_acquire) != number) continue;
        std::memcpy(memory_.data(), bytes_ > short_bytes ? place(in_, number) : line.body.data(), bytes_);
    }

private:
    [[nodiscard]] std::byte* place(Way& way, std::uint64_t number) const {
        const auto room = 2 * ((bytes_ + line_bytes - 1) / line_bytes * line_bytes);
        return way.data.data() + (places - 1 - number % places) * room;
    }

    Way& out_;
    Way& in_;
    std::size_t bytes_;
    std::vector<std::byte> memory_;
    std::uint64_t sent_ = 0;
    std::uint64_t received_ = 0;
};

void stay_on(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    if (::sched_setaffinity(0, sizeof set, &set) == 0) return;
    std::fprintf(stderr, "floor: there is no core %d\n", core);
    std::_Exit(1);
}

/// us, for each part.
std::vector<double> measure(End& end, std::uint64_t each) {
    std::vector<double> times;
    for (std::uint64_t part = 0; part < parts; ++part) {
        const auto begun = Clock::now();
        for (std::uint64_t i = 0; i < each; ++i) {
            end.send();
            end.receive();
        }
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begun).count() /
                        static_cast<double>(each));
    }
    return times;
}

[[noreturn]] void answer(End& end) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    stay_on(1);
    for (;;) {
        end.receive();
        end.send();
    }
}

}  // namespace

int main(int count, char** arguments) {
    const auto bytes = count == 3 ? std::strtoull(arguments[1], nullptr, 10) : 0;
    const auto each = count == 3 ? std::strtoull(arguments[2], nullptr, 10) / parts : 0;
    if (bytes == 0 || bytes > most_bytes || each == 0) {
        std::fprintf(stderr, "usage: floor BYTES ITERATIONS (at most %zu, at least %ju)\n", most_bytes,
                     std::uintmax_t{parts});
        return 2;
    }
    void* const memory = ::mmap(nullptr, 2 * sizeof(Way), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    auto* const ways = static_cast<Way*>(memory);
    stay_on(1);  // or there is none, and nobody would answer
    stay_on(0);
    const auto other = ::fork();
    End end(ways[other == 0 ? 1 : 0], ways[other == 0 ? 0 : 1], bytes);
    if (other == 0) answer(end);
    static_cast<void>(measure(end, each / 10 + 1));
    auto times = measure(end, each);
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
    std::ranges::nth_element(times, times.begin() + parts / 2);
    std::printf("{\"median_us\":%.4f}\n", times[parts / 2]);
}

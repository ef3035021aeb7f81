// crowd [ROUNDS] [--json]: what eight processes on two cores can reach that do nothing but to hand each other cache lines.
//
//   turns       everybody gives its core away, and waits for nothing: what it takes until each has had its turn
//   ring        a number goes round; one iteration is one lap
//   all to all  everybody writes 1 KiB to everybody, and reads what it is written, once an iteration
//
// Each by several ways to wait, and places of the processes: wherever the kernel has them, neighbours of the ring on different
// cores, halves of the ring on a core each, and all on one. A figure is the median over the rounds, each of which runs
// everything: wall time, CPU time and context switches of all processes, per iteration.
#include <linux/futex.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint32_t processes = 8;
constexpr std::size_t line_bytes = 64;
constexpr std::size_t payload = 1024;
constexpr std::uint32_t iterations = 1000;
constexpr std::uint32_t warm_up = 100;
constexpr auto long_look = std::chrono::microseconds(2);  // a context switch, or two

enum class Wait { yield, look, futex, eventfd };
enum class Place { free, alternating, halves, one };
enum class Pattern { turns, ring, all_to_all };
struct Way {
    const char* name;
    Wait wait;
};
struct Site {
    const char* name;
    Place place;
};
constexpr std::array ways{Way{"sched_yield after each look", Wait::yield},
                          Way{"... after looking for 2 us", Wait::look}, Way{"sleeps on a futex", Wait::futex},
                          Way{"sleeps on an eventfd", Wait::eventfd}};
constexpr std::array sites{Site{"free", Place::free}, Site{"alternating", Place::alternating},
                           Site{"halves", Place::halves}, Site{"one core", Place::one}};

/// What one process has written to another: each round in the other half, which has been read when it is written again.
struct Mail {
    struct alignas(line_bytes) Half {
        std::atomic<std::uint32_t> number{0};
        alignas(line_bytes) std::array<std::byte, payload> data;
    };
    std::array<Half, 2> halves;
};

/// Who sleeps says so, and looks once more; who has written looks whether somebody does.
struct alignas(line_bytes) Bed {
    std::atomic<std::uint32_t> asleep{0};
};

struct Shared {
    std::array<std::array<Mail, processes>, processes> mails;  // from, to
    std::array<Bed, processes> beds;
    alignas(line_bytes) std::atomic<std::uint32_t> ready{0};
    double us = 0;  // per iteration
};

struct Figures {
    double wall_us, cpu_us, switches;
};

int core_of(std::uint32_t rank, Place place) {
    switch (place) {
        case Place::alternating: return static_cast<int>(rank % 2);
        case Place::halves: return static_cast<int>(rank * 2 / processes);
        default: return 0;
    }
}

void go_to(std::uint32_t rank, Place place) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core_of(rank, place), &set);
    if (place == Place::free) CPU_SET(1, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) std::_Exit(1);
}

class Process {
public:
    Process(Shared& shared, const std::array<int, processes>& bells, std::uint32_t rank, Wait wait)
        : shared_(shared), bells_(bells), rank_(rank), wait_(wait) {}

    void run(Pattern pattern) {
        shared_.ready.fetch_add(1);
        while (shared_.ready.load() < processes) ::sched_yield();
        auto begun = Clock::now();
        for (std::uint32_t number = 1; number <= warm_up + iterations; ++number) {
            if (number == warm_up + 1) begun = Clock::now();
            switch (pattern) {
                case Pattern::turns: ::sched_yield(); break;
                case Pattern::ring: lap(number); break;
                case Pattern::all_to_all: exchange(number); break;
            }
        }
        if (rank_ != 0) return;
        shared_.us = std::chrono::duration<double, std::micro>(Clock::now() - begun).count() / iterations;
    }

private:
    [[nodiscard]] Mail::Half& mail(std::uint32_t from, std::uint32_t to, std::uint32_t number) const {
        return shared_.mails[from][to].halves[number % 2];
    }
    [[nodiscard]] bool came(std::uint32_t from, std::uint32_t number) const {
        return mail(from, rank_, number).number.load(std::memory_order_acquire) == number;
    }

    void lap(std::uint32_t number) {
        const auto from = (rank_ + processes - 1) % processes;
        if (rank_ != 0) wait([&] { return came(from, number); });
        publish((rank_ + 1) % processes, number);
        if (rank_ == 0) wait([&] { return came(from, number); });
    }
    void exchange(std::uint32_t number) {
        for (std::uint32_t i = 1; i < processes; ++i) {
            const auto to = (rank_ + i) % processes;
            mail(rank_, to, number).data = out_;
            publish(to, number);
        }
        for (std::uint32_t i = 1; i < processes; ++i) {
            const auto from = (rank_ + i) % processes;
            wait([&] { return came(from, number); });
            in_[i] = mail(from, rank_, number).data;
        }
    }

    void publish(std::uint32_t to, std::uint32_t number) {
        mail(rank_, to, number).number.store(number, std::memory_order_release);
        if (wait_ == Wait::yield || wait_ == Wait::look) return;
        std::atomic_thread_fence(std::memory_order_seq_cst);
        auto& asleep = shared_.beds[to].asleep;
        if (asleep.load(std::memory_order_relaxed) == 0 || asleep.exchange(0) == 0) return;
        if (wait_ == Wait::futex) {
            ::syscall(SYS_futex, &asleep, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
        } else {
            const std::uint64_t one = 1;
            if (::write(bells_[to], &one, sizeof one) < 0) std::_Exit(1);
        }
    }

    template <typename Over>
    void wait(Over over) {
        while (!over()) {
            if (wait_ == Wait::yield) {
                ::sched_yield();
            } else if (wait_ == Wait::look) {
                for (const auto begun = Clock::now(); !over() && Clock::now() - begun < long_look;) continue;
                if (!over()) ::sched_yield();
            } else {
                sleep(over);
            }
        }
    }
    template <typename Over>
    void sleep(Over over) {
        auto& asleep = shared_.beds[rank_].asleep;
        asleep.store(1);
        if (over() && asleep.exchange(0) == 1) return;  // else the bell rings
        if (wait_ == Wait::futex) {
            while (asleep.load() == 1) ::syscall(SYS_futex, &asleep, FUTEX_WAIT, 1, nullptr, nullptr, 0);
        } else {
            std::uint64_t rings = 0;
            if (::read(bells_[rank_], &rings, sizeof rings) < 0) std::_Exit(1);
        }
    }

    Shared& shared_;
    const std::array<int, processes>& bells_;
    const std::uint32_t rank_;
    const Wait wait_;
    std::array<std::byte, payload> out_{};
    std::array<std::array<std::byte, payload>, processes> in_{};
};

Figures measure(Pattern pattern, Wait wait, Place place) {
    void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::exit(1);
    auto& shared = *new (memory) Shared;
    std::array<int, processes> bells{};
    for (auto& bell : bells) bell = ::eventfd(0, EFD_CLOEXEC);
    for (std::uint32_t rank = 0; rank < processes; ++rank) {
        const auto child = ::fork();
        if (child < 0) std::exit(1);
        if (child > 0) continue;
        go_to(rank, place);
        Process(shared, bells, rank, wait).run(pattern);
        std::_Exit(0);
    }
    Figures figures{};
    bool well = true;
    for (std::uint32_t rank = 0; rank < processes; ++rank) {
        rusage usage{};
        int status = 0;
        well = ::wait4(-1, &status, 0, &usage) > 0 && status == 0 && well;
        const auto us = [](const timeval& t) {
            return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_usec);
        };
        figures.cpu_us += (us(usage.ru_utime) + us(usage.ru_stime)) / (warm_up + iterations);
        figures.switches += static_cast<double>(usage.ru_nvcsw + usage.ru_nivcsw) / (warm_up + iterations);
    }
    figures.wall_us = shared.us;
    for (const auto bell : bells) ::close(bell);
    ::munmap(memory, sizeof(Shared));
    if (!well) std::exit(1);
    return figures;
}

double median(std::vector<Figures>& runs, double Figures::*of) {
    std::ranges::sort(runs, {}, of);
    return runs[runs.size() / 2].*of;
}

struct Row {
    Pattern pattern;
    Way way;
    Site site;
    std::vector<Figures> runs;
};

std::vector<Row> all_rows() {
    std::vector<Row> rows;
    for (const auto& site : sites) rows.push_back({Pattern::turns, ways.front(), site, {}});
    for (const auto pattern : {Pattern::ring, Pattern::all_to_all}) {
        for (const auto& way : ways) {
            for (const auto& site : sites) rows.push_back({pattern, way, site, {}});
        }
    }
    return rows;
}

void print(Row& row, bool json, bool last) {
    constexpr std::array names{"turns", "ring", "all to all"};
    const auto* const pattern = names[static_cast<std::size_t>(row.pattern)];
    const auto wall = median(row.runs, &Figures::wall_us);
    const auto cpu = median(row.runs, &Figures::cpu_us);
    const auto switches = median(row.runs, &Figures::switches);
    if (json) {
        std::printf(
            " {\"pattern\": \"%s\", \"way\": \"%s\", \"place\": \"%s\", \"wall_us\": %.2f, \"cpu_us\": %.2f, "
            "\"switches\": %.1f}%s\n",
            pattern, row.way.name, row.site.name, wall, cpu, switches, last ? "" : ",");
    } else {
        std::printf("%-10s  %-27s  %-11s %9.1f %9.1f %9.1f\n", pattern, row.way.name, row.site.name, wall, cpu,
                    switches);
    }
}

int usage() {
    std::fprintf(stderr, "usage: crowd [ROUNDS] [--json]\n");
    return 2;
}

}  // namespace

int main(int count, char** arguments) {
    bool json = false;
    unsigned long rounds = 3;
    for (int i = 1; i < count; ++i) {
        char* end = nullptr;
        if (std::string_view(arguments[i]) == "--json") {
            json = true;
        } else if (rounds = std::strtoul(arguments[i], &end, 10); *end != '\0' || rounds == 0 || rounds > 1000) {
            return usage();
        }
    }
    auto rows = all_rows();
    for (unsigned long round = 0; round < rounds; ++round) {
        for (auto& row : rows) row.runs.push_back(measure(row.pattern, row.way.wait, row.site.place));
    }
    if (!json)
        std::printf("%-10s  %-27s  %-11s %9s %9s %9s\n", "# pattern", "waits", "place", "wall us", "CPU us",
                    "switches");
    if (json) std::printf("[\n");
    for (auto& row : rows) print(row, json, &row == &rows.back());
    if (json) std::printf("]\n");
}

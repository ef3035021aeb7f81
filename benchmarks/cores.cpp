// cores: how far apart cores 0 and 1 are now: what a cache line takes from one to the other and back, in ns.
//
// Virtual machines are moved between processors that have a cache in common and such that have not, for seconds. A round trip
// over a socket takes half as long again on the latter, so that figures are to be compared only if they are from the same.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

namespace {

constexpr int rounds = 1000;
constexpr int times = 20;

alignas(128) std::atomic<int> line{0};

bool stay_on(int core) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

void answer() {
    stay_on(1);
    for (int i = 0; i < 2 * rounds * times; i += 2) {
        while (line.load() != i + 1) {
        }
        line.store(i + 2);
    }
}

double ask(int first) {
    const auto begun = std::chrono::steady_clock::now();
    for (int i = first; i < first + 2 * rounds; i += 2) {
        line.store(i + 1);
        while (line.load() != i + 2) {
        }
    }
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begun).count() / rounds;
}

}  // namespace

int main() {
    if (std::thread::hardware_concurrency() < 2 || !stay_on(0)) {
        std::fprintf(stderr, "cores: there is no second core\n");
        return 1;
    }
    std::thread other(answer);
    double least = 1e9;
    for (int i = 0; i < times; ++i) least = std::min(least, ask(2 * rounds * i));
    other.join();
    std::printf("%.0f\n", least);
}

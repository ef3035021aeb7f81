#include "base/clock.hpp"

#include <chrono>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace railmux::base {

constinit SharedTickClock detail::process_clock;

namespace {

// The first rate comes from two readings so far apart: good to a thousandth, and soon better.
constexpr Nanoseconds first_baseline = 50 * microsecond;

Nanoseconds system_clock() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

#if defined(__x86_64__)

/// Whether the counter runs at one rate whatever the core does, and the kernel, which checks that the cores agree and that no
/// virtual machine meddles, keeps its own time by it.
bool counter_is_good() noexcept {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    constexpr unsigned power_leaf = 0x80000007;
    constexpr unsigned invariant = 1U << 8;
    if (__get_cpuid(power_leaf, &a, &b, &c, &d) == 0 || (d & invariant) == 0) return false;
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string source;
    return file >> source && source == "tsc";
}

struct Reading {
    std::uint64_t ticks;
    Nanoseconds ns;
};

/// Both clocks at one moment: the closest of a few tries, because anything may come between.
Reading read_both() noexcept {
    Reading best{};
    auto closest = ~std::uint64_t{0};
    for (int i = 0; i < 4; ++i) {
        const auto before = __rdtsc();
        const auto ns = system_clock();
        const auto took = __rdtsc() - before;
        if (took < closest) {
            closest = took;
            best = {before + took / 2, ns};
        }
    }
    return best;
}

class Keeper {
public:
    Nanoseconds now() noexcept {
        if (!good_) return system_clock();
        const std::lock_guard lock(mutex_);
        // Another thread may have been here in between.
        if (const auto now = detail::process_clock.at(__rdtsc()); now != SharedTickClock::unknown) return now;
        const auto reading = clock_ ? read_both() : first();
        if (clock_) clock_->adjust(reading.ticks, reading.ns);
        detail::process_clock.set(clock_->line());
        return clock_->line().at(reading.ticks);
    }

private:
    Reading first() noexcept {
        const auto one = read_both();
        auto two = read_both();
        while (two.ns - one.ns < first_baseline) two = read_both();
        clock_.emplace(one.ticks, one.ns, two.ticks, two.ns);
        return two;
    }

    const bool good_ = counter_is_good();
    std::mutex mutex_;
    std::optional<TickClock> clock_;
};

#endif

}  // namespace

#if defined(__x86_64__)
Nanoseconds detail::now_by_system() noexcept {
    static Keeper only;
    return only.now();
}
#else
Nanoseconds detail::now_by_system() noexcept { return system_clock(); }
#endif

}  // namespace railmux::base

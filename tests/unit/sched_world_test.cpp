#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include <fmt/core.h>

#include "repeats.hpp"
#include "sched/vft.hpp"
#include "sched/world.hpp"

using namespace railmux;
using sched::Message;
using sched::RailSpec;

namespace {

using Random = std::mt19937_64;

/// Log-uniform. Written out, because the standard's distributions differ between libraries.
double between(Random& random, double low, double high) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    return low * std::exp(unit * std::log(high / low));
}

struct Instance {
    std::vector<RailSpec> rails;
    std::vector<std::vector<std::uint32_t>> reach;
    std::vector<Message> messages;
};

/// Two or three rails, one to three peers that each reach some of them, and at most six messages, all at once.
Instance instance(Random& random, double least, double most) {
    Instance made;
    const auto rails = 2 + random() % 2;
    for (std::size_t i = 0; i < rails; ++i) {
        made.rails.push_back({.latency_ns = between(random, 5'000, 50'000),
                              .gap_ns = between(random, 300, 3'000),
                              .per_byte_ns = between(random, 0.8, 80)});
    }
    const auto peers = 1 + random() % 3;
    for (std::size_t i = 0; i < peers; ++i) {
        auto& way = made.reach.emplace_back();
        const auto set = 1 + random() % ((1U << rails) - 1);
        for (std::uint32_t r = 0; r < rails; ++r) {
            if ((set >> r & 1) != 0) way.push_back(r);
        }
    }
    const auto messages = 1 + random() % 6;
    for (std::size_t i = 0; i < messages; ++i) {
        made.messages.push_back({random() % peers, static_cast<std::uint64_t>(between(random, least, most))});
    }
    return made;
}

/// What the instance's messages take.
base::Nanoseconds makespan(const Instance& made, sched::Policy& policy, std::size_t window) {
    std::vector<sched::Wire> rails(made.rails.begin(), made.rails.end());
    return sched::World(policy, rails, made.reach).run(made.messages, window);
}

double vft_makespan(const Instance& made) {
    sched::Vft vft(made.rails.size());
    return static_cast<double>(makespan(made, vft, 64));
}

/// When the last message is delivered over rails that are busy for so long.
double end_of(const Instance& made, const std::vector<double>& busy) {
    double end = 0;
    for (std::size_t r = 0; r < busy.size(); ++r) {
        if (busy[r] > 0) end = std::max(end, busy[r] + made.rails[r].latency_ns);
    }
    return end;
}

double taken(const Instance& made, const Message& message, std::uint32_t rail) {
    return made.rails[rail].gap_ns + static_cast<double>(message.bytes) * made.rails[rail].per_byte_ns;
}

/// Whole messages: every assignment is tried. A rail's order does not matter, since only its last delivery does.
double best_whole(const Instance& made, std::size_t next, std::vector<double>& busy) {
    if (next == made.messages.size()) return end_of(made, busy);
    double best = std::numeric_limits<double>::infinity();
    const auto& message = made.messages[next];
    for (const auto r : made.reach[message.peer]) {
        busy[r] += taken(made, message, r);
        best = std::min(best, best_whole(made, next + 1, busy));
        busy[r] -= taken(made, message, r);
    }
    return best;
}

/// What the first messages of an instance take at least: of none, one, two, ...
std::vector<double> best_of_first(Instance made) {
    std::vector<double> best(made.messages.size() + 1);
    std::vector<double> busy(made.rails.size(), 0);
    for (; !made.messages.empty(); made.messages.pop_back()) best[made.messages.size()] = best_whole(made, 0, busy);
    return best;
}

/// Of all ways to hand messages over one after the other: how far it is from the optimum when the messages may end after any
/// of them, at least. Who sees them one by one cannot do better for this instance and for its beginnings, whatever he does.
double best_unforeseen(const Instance& made, std::span<const double> best, std::size_t next, double worst,
                       std::vector<double>& busy) {
    if (next == made.messages.size()) return worst;
    double least = std::numeric_limits<double>::infinity();
    const auto& message = made.messages[next];
    for (const auto r : made.reach[message.peer]) {
        const auto before = busy[r];
        busy[r] += taken(made, message, r);
        const auto now = std::max(worst, end_of(made, busy) / best[next + 1]);
        if (now < least) least = std::min(least, best_unforeseen(made, best, next + 1, now, busy));
        busy[r] = before;
    }
    return least;
}

/// Messages that may be cut anywhere can all have arrived by T exactly if for every set of peers the rails that lead to
/// them bring their bytes by then (Hall's condition, as maximum flow is minimum cut). One gap a rail is counted.
double best_divided(const Instance& made) {
    const auto feasible = [&](double end) {
        for (std::size_t set = 1; set < std::size_t{1} << made.reach.size(); ++set) {
            double bytes = 0;
            std::vector<bool> leads(made.rails.size(), false);
            for (const auto& message : made.messages) {
                if ((set >> message.peer & 1) == 0) continue;
                bytes += static_cast<double>(message.bytes);
                for (const auto r : made.reach[message.peer]) leads[r] = true;
            }
            for (std::size_t r = 0; r < leads.size(); ++r) {
                const auto& rail = made.rails[r];
                if (leads[r]) bytes -= std::max(0.0, end - rail.latency_ns - rail.gap_ns) / rail.per_byte_ns;
            }
            if (bytes > 0) return false;
        }
        return true;
    };
    double low = 0;
    double high = 1e12;
    while (high - low > 1) (feasible((low + high) / 2) ? high : low) = (low + high) / 2;
    return high;
}

struct Distribution {
    std::vector<double> values;

    [[nodiscard]] double mean() const {
        double sum = 0;
        for (const auto value : values) sum += value;
        return sum / static_cast<double>(values.size());
    }
    [[nodiscard]] double quantile(double q) {
        std::sort(values.begin(), values.end());
        return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
    }
    /// Printed on demand: TEST_FIGURES=1.
    void print(const char* what) {
        if (std::getenv("TEST_FIGURES") == nullptr) return;
        fmt::print("{}: mean {:.4f}, median {:.4f}, p90 {:.4f}, p99 {:.4f}, p99.9 {:.4f}, worst {:.4f}\n", what, mean(),
                   quantile(0.5), quantile(0.9), quantile(0.99), quantile(0.999), quantile(1));
    }
};

Distribution small_messages() {
    Random random(1);
    Distribution ratio;
    for (int i = 0; i < test::repeats(10'000); ++i) {
        const auto made = instance(random, 1, 32 * 1024 - 1);
        std::vector<double> busy(made.rails.size(), 0);
        ratio.values.push_back(vft_makespan(made) / best_whole(made, 0, busy));
    }
    ratio.print("makespan over optimum, whole messages of 1 B to 32 KiB");
    return ratio;
}

Distribution large_messages() {
    Random random(2);
    Distribution ratio;
    for (int i = 0; i < test::repeats(10'000); ++i) {
        const auto made = instance(random, 32 * 1024, 4 * 1024 * 1024);
        ratio.values.push_back(vft_makespan(made) / best_divided(made));
    }
    ratio.print("makespan over optimum, divided messages of 32 KiB to 4 MiB");
    return ratio;
}

/// The time of 5,000 messages with 64 under way, over the bound: all bytes at the sum of the rates.
double random_sizes(const char* name) {
    Instance made;
    made.rails = {
        {.per_byte_ns = 8}, {.latency_ns = 15'000, .per_byte_ns = 20}, {.latency_ns = 20'000, .per_byte_ns = 80}};
    made.reach.assign(6, {0, 1, 2});
    Random random(4);
    double bytes = 0;
    for (int i = 0; i < 5'000; ++i) {
        made.messages.push_back({random() % 6, static_cast<std::uint64_t>(between(random, 1, 1024 * 1024))});
        bytes += static_cast<double>(made.messages.back().bytes);
    }
    const auto policy = sched::make_policy(name, made.rails.size());
    const auto time = static_cast<double>(makespan(made, *policy, 64));
    return time / (bytes / (1 / 8.0 + 1 / 20.0 + 1 / 80.0));
}

}  // namespace

TEST_CASE("messages end within 5 % of the optimum on average", "[sched][world]") {
    CHECK(small_messages().mean() < 1.05);
    CHECK(large_messages().mean() < 1.05);
}

TEST_CASE("no policy that sees small messages one by one ends all within 25 % of the optimum", "[sched][world]") {
    Instance halves{.rails = {{.latency_ns = 0, .gap_ns = 0}, {.latency_ns = 0, .gap_ns = 0}}, .reach = {{0, 1}}};
    halves.messages = {{0, 1000}, {0, 1000}, {0, 2000}};
    std::vector<double> idle(2, 0);
    CHECK(best_unforeseen(halves, best_of_first(halves), 0, 1, idle) == Approx(1.5));

    Random random(1);
    Distribution least;
    Distribution vft;
    Distribution vft_of_hard;
    for (int i = 0; i < test::repeats(10'000); ++i) {
        auto made = instance(random, 1, 32 * 1024 - 1);
        const auto best = best_of_first(made);
        std::vector<double> busy(made.rails.size(), 0);
        const auto bound = best_unforeseen(made, best, 0, 1, busy);
        double worst = 1;
        for (; !made.messages.empty(); made.messages.pop_back()) {
            worst = std::max(worst, vft_makespan(made) / best[made.messages.size()]);
        }
        least.values.push_back(bound);
        vft.values.push_back(worst);
        if (bound > 1.25) vft_of_hard.values.push_back(worst / bound);
    }
    least.print("an instance's worst beginning over its optimum, any policy at least");
    vft.print("the same, vft");
    CHECK(vft.mean() < 1.02 * least.mean());
    if (vft_of_hard.values.empty()) return;  // of fewer repeats
    vft_of_hard.print(fmt::format("vft over the least, of {} beyond 1.25", vft_of_hard.values.size()).c_str());
}

// Those that are marked are not met (docs/scheduling.md, "Limits"). They are marked, not loosened: whoever meets one is told by
// the failure of its mark.
TEST_CASE("small messages end within 25 % of the optimum at worst", "[sched][world][!shouldfail]") {
    CHECK(small_messages().quantile(1) < 1.25);
}

TEST_CASE("large messages end within 25 % of the optimum at worst", "[sched][world]") {
    CHECK(large_messages().quantile(1) < 1.25);
}

TEST_CASE("another rail never makes it more than 2 % worse", "[sched][world]") {
    Random random(3);
    Distribution ratio;
    for (int i = 0; i < test::repeats(10'000); ++i) {
        auto made = instance(random, 1, 1024 * 1024);
        const auto before = vft_makespan(made);
        made.rails.push_back({.latency_ns = between(random, 5'000, 50'000), .per_byte_ns = between(random, 0.8, 80)});
        for (auto& way : made.reach) way.push_back(static_cast<std::uint32_t>(made.rails.size() - 1));
        ratio.values.push_back(vft_makespan(made) / before);
    }
    ratio.print("makespan with another rail over without");
    CHECK(ratio.quantile(1) < 1.02);
}

TEST_CASE("random sizes to six peers over three uneven rails", "[sched][world]") {
    if (std::getenv("TEST_FIGURES") != nullptr) {
        for (const auto* name : {"vft", "wfq", "weighted_round_robin", "round_robin", "fixed"})
            fmt::print("random sizes, time over bound: {} {:.3f}\n", name, random_sizes(name));
    }
    const auto vft = random_sizes("vft");
    CHECK(vft < 1.05);
    CHECK(random_sizes("round_robin") / vft >= 1.5);
    CHECK(random_sizes("weighted_round_robin") >= vft);
}

TEST_CASE("a gap that a disturbed probe found far too long does not last", "[sched][world]") {
    const std::uint64_t bytes = GENERATE(64U, 4096U);
    const auto time_of = [&](double probed_gap_ns) {
        Instance made;
        made.rails = {{.per_byte_ns = 8, .probed_gap_ns = probed_gap_ns}, {.per_byte_ns = 80}};
        made.reach = {{0, 1}};
        made.messages.assign(20'000, {0, bytes});
        sched::Vft policy(made.rails.size());
        return makespan(made, policy, 32);
    };
    CHECK(time_of(2e6) < time_of(0) + 20 * base::millisecond);
}

namespace {

struct Guess {
    base::Nanoseconds took = 0;
    double learnt_ns = 0;  // of the second rail
};

/// What 4 KiB frames or large messages, one second of both rails' time, take over two rails of 8 ns a byte and of `second`,
/// where that is thought to be of `guessed`.
Guess with_guess(double second, double guessed, std::uint64_t bytes, double seconds = 1) {
    std::vector<sched::Wire> rails;
    rails.emplace_back(RailSpec{});
    rails.emplace_back(RailSpec{.per_byte_ns = second, .guessed_per_byte_ns = guessed});
    const auto count = static_cast<std::size_t>(seconds * 1e9 * (1 / 8.0 + 1 / second) / static_cast<double>(bytes));
    const std::vector<Message> messages(count, {0, bytes});
    sched::Vft policy(2);
    sched::World world(policy, rails, std::vector<std::vector<std::uint32_t>>{{0, 1}});
    Guess found{.took = world.run(messages, bytes < 64 * 1024 ? 64 : 4)};
    found.learnt_ns = world.per_byte_ns(1);
    return found;
}

}  // namespace

TEST_CASE("a guess of G that is wrong by 100 in either direction does not last", "[sched][world]") {
    const std::uint64_t bytes = GENERATE(4096U, 1024U * 1024U);
    const double factor = GENERATE(0.01, 20.0, 100.0);
    CAPTURE(bytes, factor);
    const auto right = with_guess(8, 8, bytes, 3);
    const auto wrong = with_guess(8, 8 * factor, bytes, 3);
    CHECK(wrong.learnt_ns == Approx(8).epsilon(0.2));
    // Before the second rail is tried the first one does it alone: twice as long.
    CHECK(wrong.took < right.took + base::second);
}

TEST_CASE("a slow rail that is rightly thought to be slow is not tried for long", "[sched][world]") {
    const double slower = GENERATE(40.0, 100.0);
    const std::uint64_t bytes = GENERATE(4096U, 1024U * 1024U);
    CAPTURE(slower, bytes);
    const auto found = with_guess(8 * slower, 8 * slower, bytes, 3);
    const double alone =
        3e9 * (1 + 1 / slower) * (1 + 500 / (8.0 * static_cast<double>(bytes)));  // over the fast one, with gaps
    const double trial = 2 * 16 * 1024 * 8 * slower;                              // two pieces, once
    CHECK(static_cast<double>(found.took) < 1.002 * alone + trial);
}

TEST_CASE("random sizes: weighted_round_robin takes 1.15 times as long", "[sched][world][!shouldfail]") {
    // It knows the true rates here, and is within 1 % of the bound itself: nothing could be so much faster.
    CHECK(random_sizes("weighted_round_robin") / random_sizes("vft") >= 1.15);
}

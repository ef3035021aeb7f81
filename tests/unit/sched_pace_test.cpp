#include "sched/pace.hpp"

#include <catch2/catch.hpp>

#include <deque>
#include <functional>

using namespace railmux;
using sched::Pace;
using sched::Ticks;
using sched::to_ticks;

namespace {

/// A rail that serves at a rate, behind a token bucket; acknowledgements come after a latency, in heaps of 100 us.
class Rail {
public:
    explicit Rail(double ns_per_byte) : ns_per_byte_(ns_per_byte) {}

    Pace pace;
    double burst_bytes = 0;  // pass at once
    double latency_ns = 20'000;

    void set(double ns_per_byte) { ns_per_byte_ = ns_per_byte; }
    void away_until(double time) { away_until_ = time; }
    [[nodiscard]] double now() const { return now_; }

    /// Keeps `backlog` bytes on the rail, in messages of `bytes`, until `total` more have been delivered.
    void run(std::uint64_t total, std::uint64_t backlog, std::uint64_t bytes) {
        const auto until = delivered_ + total;
        while (delivered_ < until) {
            while (pace.backlog() + bytes <= backlog || pace.backlog() == 0) send(bytes);
            acknowledge();
        }
    }
    /// Lets it fall idle.
    void idle(double ns) {
        while (pace.backlog() > 0) acknowledge();
        now_ += ns;
        tokens_ = std::min(burst_bytes, tokens_ + ns / ns_per_byte_);
    }

private:
    void send(std::uint64_t bytes) {
        pace.sent(bytes, static_cast<base::Nanoseconds>(now_));
        const auto free = std::min(tokens_, static_cast<double>(bytes));
        tokens_ -= free;
        free_at_ = std::max(free_at_, now_) + (static_cast<double>(bytes) - free) * ns_per_byte_;
        under_way_.push_back({bytes, free_at_ + latency_ns});
    }
    void acknowledge() {
        // Kept back until the end of its 100 us, or until the peer is back.
        const auto arrives = under_way_.front().arrives;
        now_ = std::max({now_, (std::floor(arrives / 100'000) + 1) * 100'000, away_until_});
        while (!under_way_.empty() && under_way_.front().arrives <= now_) {
            pace.delivered(under_way_.front().bytes);
            delivered_ += under_way_.front().bytes;
            under_way_.pop_front();
        }
        pace.settle(static_cast<base::Nanoseconds>(now_));
    }

    struct Message {
        std::uint64_t bytes;
        double arrives;
    };
    double ns_per_byte_;
    double now_ = 1e9;
    double free_at_ = 0;
    double tokens_ = 0;
    double away_until_ = 0;
    std::uint64_t delivered_ = 0;
    std::deque<Message> under_way_;
};

double ns_per_byte(const Pace& pace) { return static_cast<double>(pace.per_byte()) / sched::ticks_per_ns; }

}  // namespace

TEST_CASE("pace: a constant rate is found, whatever the size of messages", "[sched]") {
    const double G = GENERATE(0.8, 8.0, 80.0);
    const std::uint64_t bytes = GENERATE(512, 4096, 65536);
    Rail rail(G);
    rail.run(1 << 20, 256 << 10, bytes);
    CHECK(ns_per_byte(rail.pace) == Approx(G).epsilon(0.25));  // acknowledged in a few heaps only, if it is fast
    rail.run(16 << 20, 256 << 10, bytes);
    CHECK(ns_per_byte(rail.pace) == Approx(G).epsilon(0.03));
}

TEST_CASE("pace: a rate that changes tenfold is followed within 1 MiB or 100 ms", "[sched]") {
    const double to = GENERATE(0.8, 80.0);
    Rail rail(8);
    rail.run(4 << 20, 256 << 10, 4096);
    REQUIRE(ns_per_byte(rail.pace) == Approx(8).epsilon(0.05));
    rail.set(to);
    const auto changed = rail.now();
    rail.run(256 << 10, 256 << 10, 4096);  // what was under way at the old rate
    while (rail.now() < changed + 100e6) rail.run(64 << 10, 256 << 10, 4096);
    CHECK(ns_per_byte(rail.pace) == Approx(to).epsilon(0.1));
}

TEST_CASE("pace: bursts are not taken for the rate", "[sched]") {
    Rail rail(80);
    rail.burst_bytes = 256 << 10;
    rail.idle(1e9);
    rail.run(1 << 20, 256 << 10, 4096);
    CHECK(ns_per_byte(rail.pace) == Approx(80).epsilon(0.1));
}

TEST_CASE("pace: a peer that was away for a moment does not look like a slow rail", "[sched]") {
    Rail rail(8);
    rail.run(8 << 20, 256 << 10, 4096);
    const auto before = ns_per_byte(rail.pace);
    rail.away_until(rail.now() + 5e6);
    rail.run(1 << 20, 256 << 10, 4096);
    CHECK(ns_per_byte(rail.pace) == Approx(before).epsilon(0.05));
}

TEST_CASE("pace: a sender that waits for each answer teaches nothing", "[sched]") {
    Rail rail(8);
    for (int i = 0; i < 1000; ++i) {
        rail.run(64, 64, 64);
        rail.idle(1000);
    }
    CHECK(rail.pace.per_byte() == 0);
}

TEST_CASE("pace: the allowance grows with what has gone through, and begins anew", "[sched]") {
    Rail rail(8);
    const auto first = rail.pace.allowance();
    rail.run(1 << 20, 256 << 10, 4096);
    CHECK(rail.pace.allowance() >= first + (1 << 20));
    rail.idle(1000);
    rail.run(4096, 4096, 4096);
    CHECK(rail.pace.allowance() < first + (64 << 10));
}

TEST_CASE("echo: the least of enough round trips, forgotten after two seconds", "[sched]") {
    sched::Echo echo;
    for (int i = 0; i < 7; ++i) echo.heard(20'000 + i, i);
    CHECK(echo.latency() == 0);
    echo.heard(30'000, 8);
    CHECK(echo.latency() == to_ticks(base::Nanoseconds{10'000}));
    for (int i = 0; i < 8; ++i) echo.heard(50'000, 5 * base::second + i);
    CHECK(echo.latency() == to_ticks(base::Nanoseconds{25'000}));
}

// Flow: a sender that keeps one rail busy under a fake clock, for the tests of Pace. Time is a number: nothing here waits.
//
// Threads: one thread.
// Lifetime: a value.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <utility>

#include "sched/pace.hpp"
#include "sched/wire.hpp"

namespace railmux::sched::test {

/// Of a rate, in ns a byte.
inline void check_near(double value, double expected, double tolerance) {
    INFO(value << " ns/B, expected " << expected);
    CHECK(value > expected * (1 - tolerance));
    CHECK(value < expected * (1 + tolerance));
}

/// A sender that keeps `window` bytes on one rail, and what its Pace makes of that.
class Flow {
public:
    Flow(const RailSpec& spec, std::uint64_t window, std::uint64_t message)
        : wire(spec), window_(window), message_(message) {}

    void bytes(std::uint64_t count) {
        for (const auto end = acknowledged_ + count; acknowledged_ < end;) step();
    }
    void time(base::Nanoseconds span) {
        for (const auto end = now_ + span; now_ < end;) step();
    }
    /// From now on what has come is told, and not only that it was acknowledged.
    void told() { told_ = true; }
    /// Nothing is sent for so long.
    void idle(base::Nanoseconds span) {
        const auto window = std::exchange(window_, 0);
        while (!acks_.empty()) step();
        window_ = window;
        now_ += span;
    }
    [[nodiscard]] double per_byte_ns() const { return static_cast<double>(pace.per_byte()) / ticks_per_ns; }
    [[nodiscard]] base::Nanoseconds now() const { return now_; }

    Wire wire;
    Pace pace;

private:
    struct Ack {
        base::Nanoseconds at;
        std::uint64_t bytes;
    };

    void step() {
        while (pace.backlog() < window_) {
            pace.sent(message_, now_);
            acks_.push_back({wire.acknowledge(wire.deliver(message_, now_)), message_});
        }
        now_ = acks_.front().at;
        for (; !acks_.empty() && acks_.front().at <= now_; acks_.pop_front()) {
            pace.delivered(acks_.front().bytes);
            acknowledged_ += acks_.front().bytes;
        }
        pace.settle(now_, now_, {}, {.exact = told_});
    }

    std::uint64_t window_;
    std::uint64_t message_;
    std::uint64_t acknowledged_ = 0;
    base::Nanoseconds now_ = 0;
    bool told_ = false;
    std::deque<Ack> acks_;
};

}  // namespace railmux::sched::test

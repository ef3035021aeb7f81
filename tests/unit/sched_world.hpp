// A world for the scheduler's tests: rails after LogGP, with a token bucket where wanted, and acknowledgements that come a
// latency later and are kept back for up to 100 us. Time is a number: nothing here waits.
//
// Threads: one thread.
// Lifetime: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "sched/pace.hpp"
#include "sched/policy.hpp"

namespace railmux::sched::test {

struct RailSpec {
    double latency_ns = 10'000;
    double gap_ns = 500;
    double per_byte_ns = 8;
    double burst_bytes = 0;  // of a token bucket; what it lets through at once takes line_per_byte_ns
    double line_per_byte_ns = 0.8;
    base::Nanoseconds ack_hold = 100 * base::microsecond;
    double probed_gap_ns = 0;  // as a probe that was disturbed has it; 0: the true one

    [[nodiscard]] Cost cost() const {
        return {.latency = to_ticks(latency_ns),
                .slope = to_ticks(per_byte_ns),
                .gap = to_ticks(probed_gap_ns > 0 ? probed_gap_ns : gap_ns),
                .per_byte = to_ticks(per_byte_ns)};
    }
};

/// One rail: when what is handed to it arrives, and when that is known to the sender.
class Wire {
public:
    explicit Wire(const RailSpec& spec) : spec_(spec) {}

    base::Nanoseconds deliver(std::uint64_t bytes, base::Nanoseconds now) {
        const auto size = static_cast<double>(bytes);
        const auto at = static_cast<double>(now);
        const bool shaped = spec_.burst_bytes > 0;
        line_ = std::max(line_, at) + spec_.gap_ns + size * (shaped ? spec_.line_per_byte_ns : spec_.per_byte_ns);
        if (shaped) {
            // The bucket as its theoretical arrival time: behind now by what it holds.
            bucket_ = std::max(bucket_, at - spec_.burst_bytes * spec_.per_byte_ns) + size * spec_.per_byte_ns;
            line_ = std::max(line_, bucket_);
        }
        return static_cast<base::Nanoseconds>(line_ + spec_.latency_ns);
    }
    /// Arrivals share the acknowledgement that the first of them made due.
    base::Nanoseconds acknowledge(base::Nanoseconds arrival) {
        arrival = std::max(arrival, away_until_);
        if (arrival > ack_at_) ack_at_ = arrival + spec_.ack_hold;
        return ack_at_ + static_cast<base::Nanoseconds>(spec_.latency_ns);
    }

    void change_rate(double per_byte_ns) { spec_.per_byte_ns = per_byte_ns; }
    /// The peer looks at nothing until then.
    void away(base::Nanoseconds until) { away_until_ = until; }
    [[nodiscard]] const RailSpec& spec() const { return spec_; }

private:
    RailSpec spec_;
    double line_ = 0;
    double bucket_ = -1e18;
    base::Nanoseconds ack_at_ = -1;
    base::Nanoseconds away_until_ = 0;
};

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
        pace.settle(now_, now_);
    }

    std::uint64_t window_;
    std::uint64_t message_;
    std::uint64_t acknowledged_ = 0;
    base::Nanoseconds now_ = 0;
    std::deque<Ack> acks_;
};

}  // namespace railmux::sched::test

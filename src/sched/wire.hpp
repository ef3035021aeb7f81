// Wire: one rail of a world under a fake clock: after LogGP, with a token bucket where wanted, and acknowledgements that come a
// latency later and are kept back for up to 100 us.
//
// Threads: one thread.
// Lifetime: values.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sched/policy.hpp"

namespace railmux::sched {

struct RailSpec {
    double latency_ns = 10'000;
    double gap_ns = 500;
    double per_byte_ns = 8;
    double burst_bytes = 0;  // of a token bucket; what it lets through at once takes line_per_byte_ns
    double line_per_byte_ns = 0.8;
    double overhead_per_byte_ns = 0;  // what the way grows by with the size beside the rail's time
    base::Nanoseconds ack_hold = 100 * base::microsecond;
    double probed_gap_ns = 0;        // as a probe that was disturbed has it; 0: the true one
    double guessed_per_byte_ns = 0;  // the same of G, by whatever is thought at the beginning

    /// What a probe finds of it: a lone message, too, takes the gap.
    [[nodiscard]] Cost cost() const {
        const auto per_byte = guessed_per_byte_ns > 0 ? guessed_per_byte_ns : per_byte_ns;
        return {.latency = to_ticks(latency_ns + gap_ns),
                .slope = to_ticks(per_byte + overhead_per_byte_ns),
                .gap = to_ticks(probed_gap_ns > 0 ? probed_gap_ns : gap_ns),
                .per_byte = to_ticks(per_byte)};
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
        line_ = std::min(line_, longest);
        const auto arrival = line_ + spec_.latency_ns + size * spec_.overhead_per_byte_ns;
        return static_cast<base::Nanoseconds>(std::min(arrival, longest));
    }
    /// Arrivals share the acknowledgement that the first of them made due.
    base::Nanoseconds acknowledge(base::Nanoseconds arrival) {
        arrival = std::max(arrival, away_until_);
        if (arrival > ack_at_) ack_at_ = arrival + spec_.ack_hold;
        return ack_at_ + static_cast<base::Nanoseconds>(std::max(spec_.latency_ns, 0.0));
    }

    /// From now on it behaves like that; what it has been handed stays on it.
    void become(const RailSpec& spec) { spec_ = spec; }
    void change_rate(double per_byte_ns) { spec_.per_byte_ns = per_byte_ns; }
    /// The peer looks at nothing until then.
    void away(base::Nanoseconds until) { away_until_ = until; }
    [[nodiscard]] const RailSpec& spec() const { return spec_; }

private:
    // 26 days: nothing arrives later, and ticks stay far from overflow.
    static constexpr double longest = 0x1p51;

    RailSpec spec_;
    double line_ = 0;
    double bucket_ = -1e18;
    base::Nanoseconds ack_at_ = -1;
    base::Nanoseconds away_until_ = 0;
};

}  // namespace railmux::sched

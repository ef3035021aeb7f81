// Arrivals: from acknowledgements to deliveries. An acknowledgement tells when the newest frame it covers arrived; the others
// arrived between the acknowledgement before and then. A delivery counts as timed where that leaves little doubt.
//
// Threads: one thread.
// Lifetime: refers to the trace that is being read.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "trace/reader.hpp"

namespace railmux::trace {

class Arrivals {
public:
    explicit Arrivals(Trace& trace) : trace_(trace) {}

    /// Decision number `place` was made about frame `seq`.
    void decided(std::uint32_t seq, std::uint32_t place, const Decision& decision);
    void acknowledged(const AcknowledgedRecord& record, base::Nanoseconds time);
    /// No more will come.
    void end();

private:
    struct Peer {
        std::unordered_map<std::uint32_t, std::uint32_t> open;  // seq -> decision
        struct Sent {
            std::uint32_t seq = 0;
            std::uint32_t place = 0;
        };
        std::deque<Sent> sent;  // in that order, the first of them open, unless an acknowledgement has come since
        // The acknowledgement under way, which has a record for each frame.
        std::vector<std::uint32_t> batch;
        base::Nanoseconds time = 0;
        base::Nanoseconds arrived = 0;
        std::uint8_t flags = 0;
        base::Nanoseconds told = 0;  // by then we know of everything that had arrived
    };

    void close(Peer& peer);
    [[nodiscard]] bool any_open(Peer& peer) const;

    Trace& trace_;
    std::unordered_map<std::uint32_t, Peer> peers_;
};

}  // namespace railmux::trace

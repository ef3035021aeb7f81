// The active side of a measurement: gives orders to the server, runs its part, and lets nothing pass that was not
// checked to have arrived.
//
// Threads: one thread, the one that uses the context.
// Lifetime: only refers to context and workspace.
#pragma once

#include <railmux/context.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "tools/control.hpp"
#include "tools/series.hpp"
#include "tools/server.hpp"

namespace railmux::tools {

/// Payload bytes by rail.
using RailBytes = std::map<std::string, std::uint64_t>;

/// How much to measure at each size.
struct Extent {
    std::uint64_t iterations = 0;  ///< 0: as many as fit into half a second
    std::uint64_t warm_up = 0;     ///< 0: what suits the size
    bool warm_up_given = false;    ///< `warm_up` counts even if 0
    std::uint64_t pause = 0;       ///< of a ping-pong: microseconds after each round trip
};

struct Outcome {
    base::Nanoseconds elapsed = 0;  ///< from the first send to the last confirmed arrival
    std::uint64_t messages = 0;     ///< of both directions together
    RailBytes rails;                ///< what this side sent, and for traffic both ways received
};

class Driver {
public:
    Driver(Context& context, Peer server, Workspace& workspace);

    /// Exchanges small messages until the rails that come up in the background have had their time to do so.
    void settle();

    /// Warms up and measures one size. The order gives action, direction, bytes and window. Throws Error when anything
    /// did not arrive or was wrong.
    [[nodiscard]] Outcome measure(Order order, const Extent& extent);

    /// Round trips of the last ping-pong, or of one-sided operations one at a time (of the first four millions), in
    /// nanoseconds.
    [[nodiscard]] std::span<std::int64_t> samples() noexcept { return samples_; }

    /// Releases the server; afterwards nothing can be measured any more.
    void finish();

private:
    Outcome run(Order order, base::Nanoseconds pause = 0);
    std::uint64_t warm_up(Order order, const Extent& extent);
    base::Nanoseconds run_part(const Part& part, const RemoteKey& key, Reply& tally);
    [[nodiscard]] Reply receive_reply();
    [[nodiscard]] RailBytes traffic(Direction direction, Action action) const;

    Context& context_;
    Peer server_;
    Workspace& workspace_;
    std::vector<std::int64_t> samples_;
    std::set<std::string> between_hosts_;  // rails worth showing even when they carried nothing
};

}  // namespace railmux::tools

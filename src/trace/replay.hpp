// Replay: the messages of a trace once more, through any policy, under a fake clock. Each link behaves as its cost said when
// the message was decided about (sched/world.hpp), so what differs between two replays is the policy alone. Messages come
// when they came: that a sender waits for its own messages, and would have gone on earlier, is not replayed.
//
// Threads: one thread at a time.
// Lifetime: refers to nothing of the trace.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sched/world.hpp"
#include "trace/reader.hpp"

namespace railmux::trace {

struct ReplayResult {
    std::string policy;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    // From the moment a message may go to its delivery.
    double mean_ns = 0;
    base::Nanoseconds median = 0;
    base::Nanoseconds p99 = 0;
    base::Nanoseconds makespan = 0;  // from the first message to the last delivery
};

class Replay {
public:
    /// Throws Error(invalid_argument) when there is nothing to replay.
    explicit Replay(const Trace& trace);
    Replay(const Replay&) = delete;
    Replay& operator=(const Replay&) = delete;

    /// `policy`: one of sched::policy_names, or vft:STAGE (stage_names). Throws Error(invalid_config) for another.
    [[nodiscard]] ReplayResult run(std::string_view policy) const;

    /// The stages of the thesis, each of which adds a term to the decision; the last one is vft itself.
    static constexpr std::string_view stage_names = "same_size|size_aware|pause_aware|latency_aware|overlap_aware";

private:
    std::size_t rails_;
    std::vector<std::vector<sched::World::Way>> ways_;
    std::vector<sched::Message> messages_;         // by time
    std::vector<std::vector<sched::Cost>> costs_;  // what those refer to
};

}  // namespace railmux::trace

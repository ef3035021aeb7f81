// Tracer: tells of decisions as they are made: into a trace file (RAILMUX_TRACE), and the first ones into the log
// (RAILMUX_EXPLAIN). It exists only where one of these is wanted.
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; refers to its rails, links, peers and policy.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"
#include "sched/policy.hpp"
#include "trace/recorder.hpp"

namespace railmux::rails {

class Tracer {
public:
    struct Options {
        std::string file;           // empty: no trace
        std::uint64_t explain = 0;  // decisions to log
        std::uint32_t rank = no_rank;
        [[nodiscard]] bool wanted() const noexcept { return !file.empty() || explain > 0; }
    };

    /// Throws Error(invalid_config) when the file cannot be written.
    Tracer(const Options& options, base::Nanoseconds now, const RailSet& rails, const sched::Policy& policy,
           LinkTable& links, const PeerTable& peers, base::Logger& log);

    /// These frames go over `link` in a row, the first `now`, the others when they were sent; the policy has not been told yet.
    /// The candidates of its peer are fresh, or as the choice found them that the frames follow.
    void decided(const Link& link, std::span<Frame* const> frames, const Conversation& talk, base::Nanoseconds now);
    /// An acknowledgement came in over `by`, and is not taken yet: when it is, another one may have come, and nobody else would
    /// know when this one did.
    [[gnu::noinline]] void heard(const Link& by, const FrameHeader& header, const Conversation& talk,
                                 base::Nanoseconds now);
    /// The frame is acknowledged by what came in over `by`, if by none that was heard before.
    void acknowledged(const Link& by, const FrameHeader& header, const Frame& frame, const Conversation& talk,
                      base::Nanoseconds now) noexcept;
    /// The pieces of a large message, which carry `token`, may go.
    void offered(std::uint32_t peer, std::uint64_t token, std::uint64_t bytes, base::Nanoseconds now) noexcept;

    /// What is explained must have been decided: until all of that has been, each frame is to have a choice of its own.
    [[nodiscard]] bool explains() const noexcept { return explained_ < to_explain_; }
    /// Whether there is nothing more to tell: then it can go.
    [[nodiscard]] bool over() const noexcept { return !recorder_ && !explains(); }

private:
    struct Announced {  // what the file says of a link
        std::uint32_t peer = no_peer;
        std::uint64_t instance = 0;  // of the process over there
        std::uint8_t rail = 0;
        std::uint8_t remote_rail = 0;
        sched::Cost cost{};
        friend bool operator==(const Announced&, const Announced&) = default;
    };

    void record(const Link& link, std::span<Frame* const> frames, const Conversation& talk, base::Nanoseconds now);
    /// What an acknowledgement said.
    struct Heard {
        std::uint32_t ack = 0;
        std::uint8_t flags = 0;      // of its record (trace/format.hpp)
        base::Nanoseconds at = 0;    // when it came,
        base::Nanoseconds back = 0;  // and how long before that the newest frame had arrived
    };
    /// Of a peer's session: those that came with frames and were not taken at once, the oldest first; and the first that may
    /// tell of a frame whose acknowledgement is taken next. They are taken within microseconds, and then no longer kept.
    struct Untaken {
        std::uint64_t instance = 0;
        std::uint8_t epoch = 0;
        std::vector<Heard> heard{};
        std::size_t next = 0;
    };
    [[nodiscard]] static Heard said_by(const Link& by, const FrameHeader& header, const Conversation& talk,
                                       base::Nanoseconds now) noexcept;

    [[nodiscard]] Untaken& untaken_of(std::uint32_t peer) noexcept;
    void tell_unrecorded(std::uint32_t rail);
    void announce(const Link& link, const sched::Cost& cost);
    void explain(const Link& link, const Frame& frame, const Conversation& talk, base::Nanoseconds now);

    const sched::Policy& policy_;
    LinkTable& links_;
    const PeerTable& peers_;
    const RailSet& rails_;
    std::size_t recorded_rails_ = 0;
    bool told_unrecorded_ = false;
    base::Logger& log_;
    std::uint64_t to_explain_;
    std::uint64_t explained_ = 0;
    std::optional<trace::Recorder> recorder_;
    std::vector<Announced> announced_;      // by link
    std::vector<std::uint64_t> instances_;  // by peer: the process whose name the file has
    std::vector<Untaken> untaken_;          // by peer
};

}  // namespace railmux::rails

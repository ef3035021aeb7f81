// Assessor: knows for each link how long frames take on it when nothing else is there. A model starts as a guess from
// transport and link speed; a probe measures it as the link comes up. What traffic shows then is in sched/pace.hpp.
//
// One side of a link measures, the one that asked for it, and tells the other. Probes go between the application's
// frames, which never wait for them. Between probes this costs nothing.
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; what it knows of a link lives and dies with the link.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <railmux/assessment.hpp>
#include <railmux/loggp.hpp>

#include "base/log.hpp"
#include "model/mirror.hpp"
#include "model/prober.hpp"
#include "rails/frame_pool.hpp"
#include "rails/link.hpp"
#include "rails/probe_puts.hpp"
#include "rails/rail_set.hpp"
#include "rails/repeats.hpp"
#include "rails/stored_models.hpp"

namespace railmux::rails {

/// How a rail was last looked at, for the times of what that look brought.
struct Look {
    base::Nanoseconds begun = 0;
    base::Nanoseconds at = 0;           // when it ended
    base::Nanoseconds blind = 0;        // before it nobody had looked for so long
    base::Nanoseconds receive_cpu = 0;  // its share for one frame; 0: not taken
};

/// What the assessor asks of the rail manager.
class AssessorHost {
public:
    /// Hands the frame to the rail at once, or as soon as the rail has room.
    virtual void post_now(Link& link, Frame* frame) = 0;
    /// The link's model is another one now.
    virtual void model_changed(Link& link) = 0;
    /// Whether the application has anything under way on the rail, to whomever.
    [[nodiscard]] virtual bool carries(std::uint32_t rail) const noexcept = 0;
    /// For how long there has been traffic, over whatever link.
    [[nodiscard]] virtual base::Nanoseconds busy() const noexcept = 0;

protected:
    ~AssessorHost() = default;
};

/// A frame that nobody acknowledges: `head`, then `payload`.
[[nodiscard]] Frame* probe_frame(FramePool& pool, FrameType type, std::span<const std::byte> head,
                                 std::span<const std::byte> payload = {});

/// What is known of one link. Part of a Link.
struct Assessed {
    explicit Assessed(LogGP first) : model(std::move(first)) {}

    LogGP model;  // as measured, or the guess
    ModelSource source = ModelSource::guess;
    model::Mirror mirror;

    struct Probe {  // while one is running
        explicit Probe(model::ProbeOptions options) : prober(std::move(options)) {}
        model::Prober prober;
        bool full = false;
        bool awaiting = false;  // a train is under way
        model::Train train{};
        std::uint64_t large = 0;  // full: messages up to so many bytes are to be put; 0: none, or it is settled
        base::Nanoseconds large_until = 0;  // ... and for so long it waits to hear where
        std::uint64_t moved = 0;            // of the application, over the link, when it began
        std::uint32_t next = 0;             // message of the train to be sent
        base::Nanoseconds begun = 0;        // of the train
        base::Nanoseconds last_sent = 0;    // end of the send before
        model::Sample sample{};
        ProbeSpent before{};          // on the rail, when it began
        base::Nanoseconds since = 0;  // ... which was then: memory is opened, and told of, before the first train
    };
    std::unique_ptr<Probe> probe;
    std::uint32_t repeated = 0;    // so many probes, because they were disturbed
    std::uint32_t next_train = 1;  // of the next probe
};

/// Adds the time for which it is there, and what was spent `before`, to what a rail's links have cost.
class Spending {
public:
    Spending(ProbeSpent& spent, base::Clock clock, base::Nanoseconds before) noexcept
        : spent_(spent), clock_(clock), from_(clock() - before) {}
    ~Spending() { spent_.cpu += std::chrono::nanoseconds(clock_() - from_); }
    Spending(const Spending&) = delete;
    Spending& operator=(const Spending&) = delete;

private:
    ProbeSpent& spent_;
    base::Clock clock_;
    base::Nanoseconds from_;
};

class Assessor {
public:
    struct Options {
        bool probe = true;                           // false: models stay guesses, corrected by traffic
        std::uint64_t eager_max = 16 << 10;          // larger messages of applications are put
        bool share = true;                           // links of one kind are only verified once one was measured
        std::optional<model::StoreOptions> store{};  // links of earlier runs are only verified, too
    };

    Assessor(Options options, base::Clock clock, RailSet& rails, LinkTable& links, const PeerTable& peers,
             FramePool& pool, AssessorHost& host, base::Logger& log);
    ~Assessor();

    /// A link is live: it gets a first model, and a probe if it is ours to measure.
    void link_up(Link& link, base::Nanoseconds now);
    void link_down(Link& link);

    /// Sends what the probes want sent. True if anything was.
    bool step(base::Nanoseconds now);
    /// Whether somebody times what comes in: then every look at the rails should know the time.
    [[nodiscard]] bool timing(base::Nanoseconds now) const noexcept { return awaiting_ > 0 || now < timing_until_; }
    /// Where that comes in.
    [[nodiscard]] std::uint32_t timed_rail() const noexcept { return timed_rail_; }
    [[nodiscard]] bool working() const noexcept { return !probed_.empty() || !fresh_.empty(); }
    /// When step wants to be called though nothing comes in.
    [[nodiscard]] base::Nanoseconds next_step() const noexcept { return probed_.empty() ? never : next_step_; }
    /// The time may have come to measure links again whose probes were disturbed. Returns when it may come next.
    [[nodiscard]] base::Nanoseconds repeat(base::Nanoseconds now);
    /// Whether `rail` may be looked at now; a late look at a reply is being waited for otherwise.
    [[nodiscard]] bool may_look(std::uint32_t rail, base::Nanoseconds now) const noexcept {
        return late_links_ == 0 || now >= late_[rail];
    }

    /// No more probes: this process is leaving, or that peer is.
    void stop();
    void stop(std::uint32_t peer);

    /// Frames of the other side's assessor. False: malformed.
    [[nodiscard]] bool on_probe(Link& link, std::span<const std::byte> body, Look look);
    void on_reply(Link& link, const model::ProbeReply& reply, std::span<const std::byte> payload, Look look);
    [[nodiscard]] bool on_model(Link& link, std::span<const std::byte> body);
    [[nodiscard]] bool on_memory(Link& link, std::span<const std::byte> body);
    /// The rail is done with a frame of a probe that closed a put.
    static void put_done(Link& link) noexcept;

    /// The largest payload of a probe's message.
    [[nodiscard]] std::uint64_t largest_probe(std::uint32_t rail) const noexcept;
    /// Measures the link with a full probe; ends with assessed->probe gone.
    void measure(Link& link, const AssessOptions& options);
    /// Ends a probe without a result.
    void abandon(Link& link);
    /// The last full probe's result, to be taken once.
    [[nodiscard]] std::optional<LinkAssessment> take_result(const Link& link);

    /// Hands over what is sent for the sake of knowing links, and counts it.
    void post(Link& link, Frame* frame);
    /// Zeros, which a frame copies as it does an application's message. Until the next call.
    [[nodiscard]] std::span<const std::byte> payload(std::uint64_t bytes);
    /// Until it ends, this thread works for the sake of knowing links of that rail.
    [[nodiscard]] Spending spending(std::uint32_t rail, base::Nanoseconds before = 0) noexcept {
        return {spent_[rail], clock_, before};
    }
    [[nodiscard]] const ProbeSpent& spent(std::uint32_t rail) const noexcept { return spent_[rail]; }

private:
    using Probe = Assessed::Probe;

    static constexpr auto never = base::never;

    bool begin_first_probe();
    [[nodiscard]] model::ProbeOptions first_probe(Link& link);
    void begin(Link& link, model::ProbeOptions options, bool full);
    bool step(Link& link, base::Nanoseconds now);
    void start_train(const Link& link, Probe& probe, const model::Train& train, base::Nanoseconds now);
    [[nodiscard]] Look take(std::span<const std::byte> payload, Look look);
    /// In payload_.
    void make_room(std::uint64_t bytes);
    [[nodiscard]] bool met_application(const Link& link, const Probe& probe) const noexcept;
    void send_due(Link& link, Probe& probe);
    void send_message(Link& link, Probe& probe);
    void finish(Link& link);
    void measured(Link& link, LogGP model, ModelSource source);
    void verified(Link& link, LogGP model);
    void disagreed(Link& link);
    void forget_probe(Link& link);
    void forget_results(const Link& link);
    void end_train(Link& link, Probe& probe);
    void tell_peer(Link& link);
    [[nodiscard]] bool puts_settled(Link& link, Probe& probe, base::Nanoseconds now);
    void use_puts(Link& link, Probe& probe);
    void end_puts(Link& link);
    void tell_memory(Link& link, const model::ProbeMemory& memory);
    [[nodiscard]] bool by_put(const Link& link, std::uint64_t bytes) const noexcept;
    [[nodiscard]] Frame* message(Link& link, FrameType type, std::span<const std::byte> head, std::uint64_t bytes,
                                 bool put);
    void adopt(Link& link, LogGP model, ModelSource source);
    [[nodiscard]] const LogGP* known_kind(const Link& link) const noexcept;
    void learn_kind(const Link& link);

    Options options_;
    base::Clock clock_;
    RailSet& rails_;
    LinkTable& links_;
    FramePool& pool_;
    AssessorHost& host_;
    base::Logger& log_;
    StoredModels stored_;

    std::vector<std::uint32_t> fresh_;   // links that have come up, and whose first probe has not begun
    std::vector<std::uint32_t> probed_;  // links with a probe
    Repeats repeats_;                    // links whose probes were disturbed
    bool stopped_ = false;
    base::Nanoseconds next_step_ = never;
    std::uint32_t awaiting_ = 0;          // of those: with a train under way
    base::Nanoseconds timing_until_ = 0;  // as a mirror
    std::uint32_t timed_rail_ = 0;
    std::uint32_t late_links_ = 0;
    std::vector<base::Nanoseconds> late_;                    // by rail
    std::vector<std::byte> place_;                           // where the payload of what comes in goes
    std::vector<std::byte> payload_;                         // of what goes out: zeros
    std::vector<ProbeSpent> spent_;                          // by rail
    std::vector<std::shared_ptr<model::Limiter>> limiters_;  // by rail

    struct Kind {  // of links that share a model: from one rail, to rails of one number. Verified for each link
        std::uint32_t rail = 0;
        std::uint8_t remote_rail = 0;
        LogGP model;
    };
    std::vector<Kind> kinds_;
    struct Result {
        transports::LinkId link;
        std::uint32_t rail = 0;
        LinkAssessment assessment;
    };
    std::vector<Result> results_;
};

}  // namespace railmux::rails

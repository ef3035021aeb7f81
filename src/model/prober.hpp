// Prober: measures one link by sending trains of messages to its mirror. It says what to send and is told what came
// back; sending, timing and waiting are its owner's, who interleaves them with other traffic.
//
//   while (true) {
//       const auto action = prober.next(now, application);
//       finished: take outcome(); wait: come back at action.until; send: send action.train, and when the reply is here
//       prober.answered(sample, now), or when it will never be prober.lost(now).
//   }
//
// One train is under way at a time. A train with a delay (or a late look) is to be sent by a busy loop when nobody else
// wants the CPU, else message by message as the owner comes by: Sample::idle has the delays as they were.
//
// Threads: one thread at a time per object.
// Lifetime: owns its samples.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/assess.hpp"
#include "model/limiter.hpp"
#include "model/plan.hpp"
#include "model/sample.hpp"

namespace railmux::model {

enum class ProbeKind : std::uint8_t {
    quick,   // as a link comes up, within QuickLimits
    full,    // as long as it takes
    verify,  // whether a model from before still holds, with at most 8 messages
};

/// Whether the rail carries anything else now: then the probe keeps to its share.
enum class Application : std::uint8_t { idle, sending };

enum class Verdict : std::uint8_t {
    running,
    measured,    // outcome().model is new
    verified,    // the expected model holds, but perhaps for the latency where it was that of another link
    disagrees,   // it does not: probe anew
    too_little,  // not enough came back to say anything; the expected model is all there is
};

struct ProbeOptions {
    ProbeKind kind = ProbeKind::quick;
    LogGP expected{};                 // the prior, or what is to be verified
    std::uint64_t max_bytes = 65536;  // the largest payload of one message
    std::uint64_t large_bytes = 0;    // full: that of messages beyond those, if larger; their sizes are not on the grid
    std::uint32_t n = 10;             // full: messages of a train
    std::uint32_t grid = 32;          // full: sizes up to max_bytes
    std::uint32_t rounds = 10;        // full: times each size is measured
    ChangeOptions changes{};
    std::shared_ptr<Limiter> limiter{};  // of the rail, where others probe it, too
    double tolerance = 0.25;             // verify: relative
    bool of_another = false;  // verify: the model is of another link of the kind, whose way may be longer or shorter
    std::uint32_t first_train = 1;  // another one than of earlier probes, whose replies may still come
};

struct ProbeCost {
    std::uint32_t messages = 0;  // in both directions
    std::uint64_t bytes = 0;     // with the probe's headers
};

struct Action {
    enum class Kind : std::uint8_t { send, wait, finished };
    Kind kind = Kind::finished;
    Train train{};
    base::Nanoseconds until = 0;
};

struct Outcome {
    Verdict verdict = Verdict::running;
    Assessment assessment{};  // of what was measured; with `too_little` the model is the expected one
    ProbeCost cost{};
    base::Nanoseconds took = 0;
    std::uint32_t lost = 0;
    // Full: sizes that were to be measured, and of which nothing is known.
    std::vector<std::uint64_t> missing{};      // no answer came to a message of that size
    std::vector<std::uint64_t> interrupted{};  // answers came, each with most of its time unseen: nothing was lost
    bool disturbed = false;  // so many were lost or interrupted that it is worth another one; never a full one
};

class Prober {
public:
    explicit Prober(ProbeOptions options);

    [[nodiscard]] Action next(base::Nanoseconds now, Application application);
    void answered(const Sample& sample, base::Nanoseconds now);
    void lost(base::Nanoseconds now);

    [[nodiscard]] const ProbeOptions& options() const noexcept { return options_; }
    [[nodiscard]] bool finished() const noexcept { return outcome_.verdict != Verdict::running; }
    [[nodiscard]] const Outcome& outcome() const noexcept { return outcome_; }
    /// All raw points so far.
    [[nodiscard]] const std::vector<Sample>& samples() const noexcept { return samples_; }
    /// Between 0 and 1, for progress bars; a change of protocol found late sets it back.
    [[nodiscard]] double progress() const noexcept;
    /// For the next probe of the link.
    [[nodiscard]] std::uint32_t next_train() const noexcept { return next_id_; }

private:
    /// What has been seen of a size so far, for delays and time estimates: the least, in ns.
    struct Known {
        std::uint64_t bytes = 0;
        double single = 0;
        double gap = 0;
    };

    [[nodiscard]] Train train_for(const Step& step) const;
    void shorten(Train& train, base::Nanoseconds now);
    [[nodiscard]] bool fits(const Train& train, base::Nanoseconds now) const noexcept;
    [[nodiscard]] double estimate(const Train& train) const noexcept;
    [[nodiscard]] double single_estimate(std::uint64_t bytes) const noexcept;
    [[nodiscard]] const Known* known(std::uint64_t bytes) const noexcept;
    void learn(const Sample& sample);
    void rest(const Train& train, base::Nanoseconds now);
    void warmed_up(base::Nanoseconds now);
    [[nodiscard]] double ns_per_byte() const;
    void step_done(base::Nanoseconds now);
    void plan_more(base::Nanoseconds now);
    [[nodiscard]] bool leave_out_large();
    void tell_unmeasured();
    [[nodiscard]] bool answered_of(std::uint64_t bytes) const;
    [[nodiscard]] bool plan_large_again();
    [[nodiscard]] bool plan_denser();
    void conclude(base::Nanoseconds now);
    [[nodiscard]] Verdict compare() const;
    [[nodiscard]] LogGP with_own_latency(LogGP model) const;

    ProbeOptions options_;
    std::shared_ptr<Limiter> limiter_;
    std::uint64_t most_a_second_;  // of bytes beside the application
    std::vector<Step> steps_;
    std::size_t at_ = 0;
    std::vector<std::uint64_t> sizes_;     // full: the grid so far
    std::vector<std::uint64_t> given_up_;  // ... and what was taken out of it, because answers got lost
    std::uint64_t least_lost_ = 0;         // the smallest size of the last few losses; 0: none
    std::uint32_t large_every_ = 3;        // full: of so many rounds one has large messages
    std::uint32_t stages_ = 0;             // that have been planned
    std::uint32_t retries_ = 0;            // of the present step
    std::uint32_t next_id_;
    std::vector<Known> known_;  // ascending
    std::vector<Sample> samples_;
    base::Nanoseconds started_ = -1;
    base::Nanoseconds rested_ = 0;     // full: no train before then
    std::uint32_t cold_ = 0;           // so many messages are to warm caches up before the next train
    base::Nanoseconds rest_warm_ = 0;  // ... and so long it comes after the last of them
    double spent_ns_ = 0;              // on the rail: without what a process that was busy elsewhere made of it
    Outcome outcome_;
};

}  // namespace railmux::model

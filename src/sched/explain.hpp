// Why a policy decides as it does: what each candidate would come to, and what tipped the scales, in words.
//
// Threads: pure functions.
// Lifetime: values.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sched/division.hpp"
#include "sched/policy.hpp"

namespace railmux::sched {

/// What a message, or its share of one, comes to over a candidate.
struct Prospect {
    Ticks wait = 0;            // until its rail is free
    Ticks delivery = 0;        // of all of the message over this candidate alone, after now
    std::uint64_t share = 0;   // bytes that go this way
    Ticks share_delivery = 0;  // of those; 0 without a share
};

struct Verdict {
    std::size_t choice = 0;             // the candidate that takes it, or most of it
    bool favoured = false;              // ... because frames like it fared best over it
    Spread spread = Spread::predicted;  // ... or as bursts like it are spread
    bool rested = false;                // ... or because it has rested for longest
    std::vector<Prospect> prospects;
};

/// What `policy` would do with `bytes` now: one frame, or, where they may be divided, a split. The policy stays as it is.
[[nodiscard]] Verdict judge(const Policy& policy, std::span<const Candidate> candidates, std::uint64_t bytes,
                            base::Nanoseconds now, bool divisible);
/// The same for a frame that went over `choice`.
[[nodiscard]] Verdict weigh(const Policy& policy, std::span<const Candidate> candidates, std::uint64_t bytes,
                            base::Nanoseconds now, std::size_t choice);
/// All of it goes where most of it was to go.
void leave_whole(Verdict& verdict, std::uint64_t bytes);

/// The reason in words; `names` are those of the candidates.
[[nodiscard]] std::string reason(const Policy& policy, const Verdict& verdict, std::span<const Candidate> candidates,
                                 std::span<const std::string> names);
/// ... of a large message that is left whole.
[[nodiscard]] std::string reason_for_whole(const Division::Preference& preference);

}  // namespace railmux::sched

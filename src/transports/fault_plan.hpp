// FaultPlan: which faults a FaultyRail injects, as a value with a text form that a failing test prints and a person
// gives back: "seed=7,refuse=10%,delay=5%:3,kill_link@37".
//
//   refuse@N            the N-th work offered to post is refused; it may be offered again
//   delay_work@N:POLLS  the N-th accepted work (and what follows it on its link) reaches the rail POLLS polls later
//   delay@N:POLLS       the N-th event (and what follows it on its link) is handed out POLLS polls later
//   duplicate@N         the N-th received frame is handed out twice, in polls one after the other: what a network, or a
//                       failover above, does that sends a frame again whose acknowledgement was lost
//   stall@N[:POLLS]     at the N-th step its link stops: nothing goes in or out for so many polls, or until it is
//                       disconnected; accepted works pile up to tx_depth
//   kill_work@N         the N-th accepted work never reaches the rail, completes as link_lost, and its link dies
//   kill_link@N         after the N-th step its link dies
//   corrupt@N           of what the N-th accepted work carries one bit is wrong where it arrives; the bytes of the caller stay
//                       as they are
//   NAME=P%[:POLLS]     instead of the N-th: each one, with that probability, from the seed
//
// A step is a work accepted or an event of a link handed out by the rail below; works, events, frames and steps are
// counted from 1 over the rail's life.
//
// Threads: a value.
// Lifetime: owns what it holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railmux::transports {

enum class Fault : std::uint8_t { refuse, delay_work, delay, duplicate, stall, kill_work, kill_link, corrupt };

struct FaultRule {
    Fault fault = Fault::refuse;
    std::uint64_t at = 0;  // the N-th; 0: by probability
    std::uint32_t percent = 0;
    std::uint32_t polls = 0;  // 0 for a stall: without end
    friend bool operator==(const FaultRule&, const FaultRule&) = default;
};

struct FaultPlan {
    std::uint64_t seed = 1;
    std::vector<FaultRule> rules;

    [[nodiscard]] bool empty() const noexcept { return rules.empty(); }
    /// Throws Error(invalid_argument) naming the rule that is malformed.
    [[nodiscard]] static FaultPlan parse(std::string_view text);
    /// Refusals, delays, and with most seeds one fault that shows; none that breaks the contract, as `corrupt` does.
    [[nodiscard]] static FaultPlan random(std::uint64_t seed);
    [[nodiscard]] std::string text() const;
    friend bool operator==(const FaultPlan&, const FaultPlan&) = default;
};

}  // namespace railmux::transports

// Sample: one measurement of PRTT(n, d, s), from the request for it to what was observed.
//
// Threads: values.
// Lifetime: own what they hold.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.hpp"

namespace railmux::model {

/// A train of messages that the mirror answers once, with as many bytes, after the last of them.
struct Train {
    std::uint32_t id = 0;  // of the prober's trains; goes over the wire
    std::uint32_t n = 1;
    std::uint64_t bytes = 1;          // s: payload of each message and of the reply
    base::Nanoseconds delay = 0;      // d: from the end of one send to the beginning of the next
    base::Nanoseconds late_look = 0;  // not 0: look for the reply only so long after the send, then time its receive

    [[nodiscard]] std::uint32_t messages() const noexcept { return n + 1; }
    [[nodiscard]] std::uint64_t all_bytes() const noexcept { return messages() * bytes; }
};

/// What the two sides saw of a train. Times that nobody took are 0.
struct Sample {
    Train train;
    base::Nanoseconds round_trip = 0;   // from the beginning of the first send to having noticed the reply
    base::Nanoseconds idle = 0;         // the delays as they really were, together; 0 for messages sent in one go
    base::Nanoseconds send_cpu = 0;     // inside the sends, together
    base::Nanoseconds receive_cpu = 0;  // inside the receive of the reply
    /// Before the reply was noticed nobody had looked for so long: an upper bound of how late it was noticed.
    base::Nanoseconds blind = 0;

    base::Nanoseconds mirror_held = 0;         // from having noticed the last message to sending the reply
    base::Nanoseconds mirror_blind = 0;        // as blind, at the mirror and of the last message
    base::Nanoseconds mirror_receive_cpu = 0;  // inside the receive of one message

    /// PRTT: without what the mirror did meanwhile.
    [[nodiscard]] double prtt() const noexcept { return static_cast<double>(round_trip - mirror_held); }

    /// As little as it may have taken, of an interrupted sample.
    [[nodiscard]] double least_prtt() const noexcept {
        return std::max(prtt() - static_cast<double>(unseen()), 0.02 * prtt());
    }
    [[nodiscard]] bool mostly_unseen() const noexcept { return 2.0 * static_cast<double>(unseen()) > prtt(); }

    /// How late somebody may have looked, altogether.
    [[nodiscard]] base::Nanoseconds unseen() const noexcept {
        return mirror_blind + (train.late_look == 0 ? blind : 0);
    }

    /// Somebody looked so late that the sample may say more about that than about the network. Looking takes time in
    /// the best case, and a process that talks to others meanwhile is away for a system call or two now and then, so a little
    /// is allowed whatever the round trip.
    [[nodiscard]] bool interrupted() const noexcept {
        const auto most = std::max<base::Nanoseconds>(round_trip - mirror_held - idle, 0);
        return unseen() > std::max<base::Nanoseconds>(most / 20, allowed_blind) || mirror_held > max_held;
    }
    static constexpr base::Nanoseconds allowed_blind = 2500;
    /// What was held is known exactly, but caches and clocks are cold after long pauses.
    static constexpr base::Nanoseconds max_held = 10 * base::millisecond;
};

}  // namespace railmux::model

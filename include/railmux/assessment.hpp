// What is known about the links of a context: their models, where those come from, and what a measurement saw.
//
// Threads: plain values.
// Lifetime: own what they hold.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <railmux/loggp.hpp>
#include <railmux/message.hpp>

namespace railmux {

/// Where a model comes from.
enum class ModelSource : std::uint8_t {
    guess,     // from transport and link speed; nothing was measured yet
    probed,    // measured as the link came up
    measured,  // measured in full by Context::assess
    verified,  // of a link of the same kind, or of an earlier run, and found to hold here
    told,      // measured by the other side
    stored,    // of an earlier run, and not verified so far
    shared,    // of a link of the same kind, and not verified so far
};

[[nodiscard]] std::string_view to_string(ModelSource source) noexcept;

/// Rails to one peer that end in something they share: a port, a switch, an uplink, a CPU.
struct RailGroup {
    std::vector<std::string> rails;  ///< two or more
    double bits_per_second = 0;      ///< of all of them together; 0: they share processors, and nobody measured that
};

/// The model of one link as it is used now.
struct LinkModel {
    Peer peer;
    std::string rail;  ///< the local rail, e.g. "tcp:eth1"
    std::string link;  ///< both ends, for people
    ModelSource source = ModelSource::guess;
    LogGP model;  ///< as corrected by traffic
    /// Larger messages are asked for first (rendezvous) where this link is the fastest to the peer: the size above which its
    /// model, as measured, has that faster (docs/model.md), eager.max at most. Over rails that register memory it holds for
    /// messages from memory that the application has registered; all others go with their header up to eager.max. Lone messages
    /// of up to 128 KiB may go in several frames instead of being asked for (bulk.inlined).
    std::uint64_t eager_max = 0;
    double drift = 1;    ///< a byte takes so many times what the probe said, by traffic; 1 while that shows nothing
    RailGroup group;     ///< whom it shares with, itself included; without rails: with nobody, as far as known
    std::string spare;   ///< why it is given nothing while others of its group live; empty if that is not so
    LogGP while_shared;  ///< the model while all of its group send; else the same as `model`
};

/// What this side has spent on knowing the links of one rail: on its probes, on answers to those of others, and on telling what
/// was found. What the others spent stands in their own statistics.
struct ProbeSpent {
    std::uint64_t messages = 0;  ///< that it sent
    std::uint64_t bytes = 0;     ///< of these, with headers
    /// Inside sends, inside receives as far as they were timed, in working out models, and with those of the store. Waiting for
    /// answers is not counted, nor is what the kernel does by itself.
    std::chrono::nanoseconds cpu{0};
};

/// One raw point: PRTT(n, delay, bytes), the time from the first of n messages to the reply.
struct ProbePoint {
    std::uint32_t n = 1;
    std::uint64_t bytes = 1;
    Nanos delay{0};               ///< between two messages, as it really was on average
    Nanos prtt{0};                ///< without the time the mirror held the reply back
    Nanos held{0};                ///< that time
    Nanos send_cpu{0};            ///< inside the sends, together
    Nanos receive_cpu{0};         ///< inside the receive of the reply
    Nanos mirror_receive_cpu{0};  ///< inside the receive of one message
    Nanos unseen{0};              ///< how late somebody may have looked, altogether
    bool late = false;            ///< the reply was deliberately looked at late, to time its receive
    bool interrupted = false;     ///< a side was away; not used
};

/// A full measurement of one link.
struct LinkAssessment {
    LinkModel link;
    std::vector<ProbePoint> points;
    // Sizes that were to be measured, and of which nothing is known:
    std::vector<std::uint64_t>
        missing{};  ///< no answer came, or they were not asked for: beyond losses, or beside much else
    std::vector<std::uint64_t> interrupted{};  ///< each was answered, but a process was away each time, for too long
    ProbeSpent spent;                          ///< meanwhile, on its rail
    std::chrono::nanoseconds took{0};          ///< from when it began until all was known: `spent` lies within
};

/// What is outside of a range is taken as the nearest value in it.
struct AssessOptions {
    std::uint32_t n = 10;  ///< messages in a row, 2 to 64
    std::uint32_t sizes =
        32;  ///< 2 to 1024: a linear grid up to the largest frame, denser near protocol changes; further apart beyond
    std::uint32_t rounds = 10;  ///< times each size is measured, 1 or more
    std::uint64_t max_bytes =
        0;  ///< largest message, up to 1 MiB, or the largest frame where the rail has no puts; 0: that
    /// Where a rail is said to change its protocol: so many sizes in a row must leave the line of those before, 3 to 16,
    std::uint32_t look_ahead = 4;
    double factor =
        2;  ///< ... each raising the mean square deviation by this much, 1.1 to 1000; less finds more changes
    std::function<void(std::string_view rail, double done)>
        progress{};  ///< now and then, done from 0 to 1; must not wait
};

/// What a rail adds to another one.
struct RailPair {
    std::string rail;
    std::string added;  ///< the slower one of the two
    double rail_bps = 0;
    double added_bps = 0;
    double together_bps = 0;
    bool shared = false;  ///< they share a bottleneck
    std::string text;     ///< "rail tcp:eth1 adds 3 % to rail tcp:eth0 at 1 MiB: they share a bottleneck of 941 Mbit/s"
};

/// What the rails to a peer bring alone and in pairs.
struct SharingAssessment {
    std::vector<RailPair> pairs;
    std::vector<RailGroup> groups;  ///< the largest first
    std::chrono::nanoseconds took{0};
};

struct SharingOptions {
    std::function<void(std::string_view rails, double done)>
        progress{};  ///< now and then, done from 0 to 1; must not wait
};

}  // namespace railmux

// Why a message goes the way it goes: what Context::explain tells.
//
// Threads: plain values.
// Lifetime: own what they hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <railmux/loggp.hpp>
#include <railmux/message.hpp>

namespace railmux {

/// A link that could carry the message, as the policy sees it.
struct ExplainedLink {
    std::string rail;                 ///< the local rail, e.g. "tcp:eth1"
    std::string link;                 ///< both ends, for people
    Nanos latency{0};                 ///< delivery of a message of nothing, on an idle rail: L + o_s + o_r
    Nanos per_byte{0};                ///< what delivery grows by with each byte
    Nanos gap{0};                     ///< the rail's time for a message beside its bytes: g
    std::uint64_t backlog_bytes = 0;  ///< handed to the rail, for whatever peer, and not acknowledged
    std::uint64_t claimed_bytes = 0;  ///< that other peers' large messages will still bring
    std::string spare{};  ///< why it does not count while others live, e.g. "moved by the same processors as shm:node"
    bool recent = false;  ///< the peer used it last, and its choice counts where links are about equal
    Nanos wait{0};        ///< until the rail is free
    Nanos delivery{0};    ///< predicted, of all of the message over this link alone, from now
    std::uint64_t share_bytes = 0;  ///< of what is to be sent: 0, all, or a part of a large message
    Nanos share_delivery{0};        ///< predicted, of that share
};

struct Explanation {
    Peer peer;
    std::string policy;
    std::uint64_t bytes = 0;  ///< of the message
    /// Its payload follows when the receiver is ready, and may be split; else it goes at once, in so many frames. Of memory
    /// that the application has not registered: from registered memory it may be asked for sooner (LinkModel::eager_max).
    bool rendezvous = false;
    std::uint32_t frames = 0;  ///< 0: rendezvous
    std::uint64_t wire_bytes =
        0;  ///< what is decided about: the payload of a rendezvous, or the message with its header
    std::vector<ExplainedLink> links;
    std::size_t choice = 0;  ///< the place in `links` of the one that takes it, or most of it
    std::string reason;      ///< one sentence, for people
};

}  // namespace railmux

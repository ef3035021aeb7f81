// What becomes of rails and peers while a context runs, for those who want to know: applications go on without.
//
// Threads: callbacks run in whichever thread progresses the context, one at a time, with no lock of their own.
// Lifetime: values own everything they show.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <railmux/error.hpp>
#include <railmux/message.hpp>

namespace railmux {

/// With a valid peer: the link to that peer over this rail was lost or is back. Without one: the local interface itself went
/// down or is up again, or a new one is used ("it is new").
struct RailEvent {
    std::string rail;                  ///< "tcp:eth1"
    Peer peer;                         ///< not valid: the interface itself, whomever it leads to
    std::string cause;                 ///< why it is down, or was
    std::chrono::nanoseconds down{0};  ///< of a rail that is up again: for how long it was not
};

/// What became of a peer. Given up: operations with it have failed, or fail with this code; the next one looks for it anew,
/// unless its process has ended: that is told once. Left: they fail as peer_left. Joined: it is a new rank, or a new process of
/// one; what was under way with its predecessor has failed as peer_lost or peer_left.
struct PeerEvent {
    Peer peer;
    ErrorCode code = ErrorCode::ok;  ///< ok: it joined
    std::string causes;  ///< of one given up, a line for each rail and attempt: what happened, and how long ago
};

/// Called from within progress (wait, test, progress, ...), never from inside another call. They may call the context, start
/// operations and set other callbacks; they must not wait for anything (Error(invalid_argument)), and must not throw (the
/// program ends: std::terminate). Whoever sets another one does not wait for a call of the former that is under way in another
/// thread.
using RailCallback = std::function<void(const RailEvent&)>;
using PeerCallback = std::function<void(const PeerEvent&)>;

}  // namespace railmux

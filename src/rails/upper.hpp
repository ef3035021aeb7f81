// Upper: what the rail manager tells the layer above it, and asks of it.
//
// Threads: those of the rail manager.
// Lifetime: outlives its rail manager.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <railmux/error.hpp>

#include "base/clock.hpp"
#include "rails/frame.hpp"
#include "rails/peer.hpp"
#include "transports/transport.hpp"

namespace railmux::rails {

/// A rail was lost or is back: to one peer, or as a whole.
struct RailNews {
    bool up = false;
    std::uint32_t rail = 0;
    std::uint32_t peer = no_peer;  // no_peer: the rail itself
    std::string cause;             // why it is down, or was
    base::Nanoseconds down = 0;    // how long it was, if it is up
};

/// What the rail manager tells the layer above. None of these may destroy the manager; all may send.
class Upper {
public:
    /// A frame of `peer`, exactly once; ordered ones in order. `body` is lent for the call. False: it breaks the protocol.
    [[nodiscard]] virtual bool on_frame(std::uint32_t peer, const FrameHeader& header,
                                        std::span<const std::byte> body) = 0;
    /// The bytes that a fin says are in their place, where they can still be looked at; else none.
    [[nodiscard]] virtual std::span<const std::byte> closed_by(std::uint32_t peer,
                                                               std::span<const std::byte> fin) noexcept = 0;
    /// A frame with a token is acknowledged, or its session is over, and no rail reads its memory, or that of its put, any
    /// more.
    virtual void on_released(std::uint32_t peer, const Frame& frame) = 0;
    /// There is a link, or the window or the credit moved: try what waits.
    virtual void on_sendable(std::uint32_t peer) = 0;
    /// The next piece of bulk for this link, of at most `most` bytes, or nullptr when there is none for its rail.
    [[nodiscard]] virtual Frame* next_bulk(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail,
                                           std::uint64_t most) = 0;
    /// The next piece to get over this link, of at most `most` bytes: a frame with `gets`; nullptr when there is none for its
    /// rail.
    [[nodiscard]] virtual Frame* next_get(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail,
                                          std::uint64_t most) = 0;
    /// What became of it: its bytes are here (ok), or it is to be got again, or (access_denied) not this way. Nothing is
    /// written to its place any more.
    virtual void on_got(std::uint32_t peer, const Frame& frame, transports::WorkStatus status) = 0;
    /// Bytes of bulk for the peer that have not been taken yet and that could go to its rail `remote_rail`.
    [[nodiscard]] virtual std::uint64_t bulk_left(std::uint32_t peer, std::uint8_t remote_rail) = 0;
    /// The peer does not allow puts of the transfer whose frames have this token: what is left of it goes without, as fins
    /// that say so.
    virtual void on_put_denied(std::uint64_t token) = 0;
    /// The peer has one link less; bulk planned for that rail needs another.
    virtual void on_link_lost(std::uint32_t peer, std::uint32_t rail) = 0;
    /// Nothing more comes of the session with the peer: it has said goodbye, or (a second time then) its session is over.
    /// on_released follows for its frames when the rails have let go of them.
    virtual void on_peer_gone(std::uint32_t peer, ErrorCode code) = 0;
    /// The peer has left in good order: told once, before that.
    virtual void on_peer_left(std::uint32_t peer) = 0;
    virtual void on_rail_news(const RailNews& news) = 0;
    /// Operations wait for a peer whose address is not known.
    virtual void on_address_wanted(std::uint32_t peer) = 0;
    /// A rail of this process has another address: whoever gives ours away should give the new one (and tell_address).
    virtual void on_address_changed() = 0;

protected:
    ~Upper() = default;
};

}  // namespace railmux::rails

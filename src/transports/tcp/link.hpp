// Link: one TCP connection of a rail: its greeting, what it still has to write, and where it stands in the stream it reads.
//
// Threads and lifetime: part of its rail.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "transports/tcp/address.hpp"
#include "transports/tcp/early_acks.hpp"
#include "transports/tcp/portions.hpp"
#include "transports/tcp/stamps.hpp"
#include "transports/tcp/tls.hpp"
#include "transports/tcp/wire.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::tcp {

inline constexpr std::size_t max_segments = 16;

enum class LinkPhase : std::uint8_t {
    free,
    connecting,      // waiting for the socket to connect
    awaiting_reply,  // hello sent; before that, where there is encryption, its handshake
    greeting,        // accepted; waiting for the hello, and before that for the handshake of encryption
    requested,       // hello handed up; waiting for accept or refuse
    up,
};

/// A work of which the socket has taken only a part. At most one a link: the next is refused until this one is written.
struct PartialWork {
    std::uint64_t cookie = 0;
    std::size_t left = 0;  // bytes not yet written; 0: there is none
    std::uint32_t at = 0;  // first iovec with something left
    std::uint32_t count = 0;
    std::array<std::byte, StreamHeader::max_size> header;
    std::array<iovec, max_segments + 1> pieces;
    bool quiet = false;  // nobody is told of its end, nor keeps its bytes for us
    std::vector<std::byte> kept;

    /// `written` more bytes are on their way.
    void advance(std::size_t written) noexcept;
    /// What is left does not stay where it is.
    void keep();
};

/// Where the reader stands: between works, or inside the bytes of a put.
struct ReadState {
    std::size_t put_left = 0;        // bytes of a put still to come
    std::byte* put_place = nullptr;  // where they go; nullptr: nowhere
    std::uint64_t put_region = 0;    // id of the region, to stop when it is dropped
    bool notify = false;
    std::uint32_t immediate = 0;
    Stamping stamping;
    base::Nanoseconds came = 0;    // when the kernel had what was read last; 0: it does not say
    std::vector<std::byte> carry;  // the beginning of a work, of which the rest has not come yet
};

struct Link {
    LinkPhase phase = LinkPhase::free;
    LinkId id;
    base::FileDescriptor socket;
    std::unique_ptr<Tls> tls;  // none: plain
    bool same_host = false;    // its bytes never leave by the interface
    bool watched = false;      // in the epoll set; a hot link is not, unless it waits for room to write
    bool wants_write = false;
    bool slow = false;         // what it was given last is for a slow network
    std::uint16_t undone = 0;  // works accepted whose `done` has not been handed out
    bool complained = false;   // about puts to nowhere
    Portions portions;         // for a slow network, once they are known
    PartialWork partial;
    ReadState read;
    std::uint64_t last_received = 0;  // poll number
    EarlyAcks early_acks;             // since it is hot

    struct Setup {                        // until up
        Endpoint to;                      // where it connects to
        std::vector<std::byte> outgoing;  // hello
        // The first record of TLS, if there is any, and then the greeting.
        std::array<std::byte, std::max(Greeting::size + Greeting::max_body, TlsOpening::max_size)> incoming;
        std::size_t received = 0;
        bool opened = false;  // that record has come
        base::Nanoseconds since = 0;
        bool late = false;  // that time was over once
    };
    std::unique_ptr<Setup> setup;
    std::string label;
};

inline void PartialWork::advance(std::size_t written) noexcept {
    left -= written;
    while (written > 0) {
        auto& piece = pieces[at];
        if (written < piece.iov_len) {
            piece.iov_base = static_cast<std::byte*>(piece.iov_base) + written;
            piece.iov_len -= written;
            return;
        }
        written -= piece.iov_len;
        ++at;
    }
}

inline void PartialWork::keep() {
    kept.clear();
    for (const auto& piece : std::span(pieces).first(count).subspan(at)) {
        const auto* const bytes = static_cast<const std::byte*>(piece.iov_base);
        kept.insert(kept.end(), bytes, bytes + piece.iov_len);
    }
    pieces[at = 0] = {kept.data(), kept.size()};
    count = 1;
}

}  // namespace railmux::transports::tcp

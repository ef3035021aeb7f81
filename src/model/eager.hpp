// Up to which size a message is delivered sooner with its header (eager) than when it is asked for first (rendezvous). One of
// s bytes takes
//   eager(s)      = delivery(s) + 2 c s, or, in several frames, + c s
//   rendezvous(s) = 2 delivery(1) + o_s + o_r + r + bulk(s)
// c: a byte copied, into a frame, and out of it. Of several frames the last one is copied into while the others are on their
// way, and these are copied out of while it is; unless all leave by one call. The rest of a rendezvous is announcement and
// answer, the closing frame, r: the receiver's memory opened for it, and closed, and the bytes themselves. bulk(s) is by the
// parameters of messages that are larger than any frame, if those are a range of their own, as a full probe finds where it
// matters: it puts such messages into their places, as is done with an application's. Else delivery(s).
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <cstdint>

#include <railmux/loggp.hpp>

namespace railmux::model {

struct EagerBounds {
    std::uint64_t least = 4 * 1024;  // below, copying takes less than any network's answer
    std::uint64_t most = 16 * 1024;
    std::uint64_t frame = 16 * 1024;  // what one holds: more goes in several,
    std::uint64_t at_once = 0;        // which leave by one call if it is no more than this, and goes over one link
};

struct EagerCosts {
    PerByte copying{};           // c: what a rendezvous saves at each end ...
    bool by_processors = false;  // ... but where those move the bytes: it copies, too
    Nanos opening{0};            // r
    double part = 1;             // of the bytes: what the link carries of messages that go over several
};

/// The size, to 512 bytes, above which rendezvous is predicted to be faster by a twentieth and more, for all sizes up
/// to `most`, or just there; `most` where there is none.
[[nodiscard]] std::uint64_t eager_max(const LogGP& model, const EagerCosts& costs, EagerBounds bounds = {}) noexcept;

/// The largest size, to 512 bytes, of messages that no frame holds and that are predicted to arrive sooner by a hundredth and
/// more if they are sent in several frames without being asked for; `most` at most, 0 where there is none.
[[nodiscard]] std::uint64_t unasked_max(const LogGP& model, const EagerCosts& costs, EagerBounds bounds) noexcept;

/// What copying takes where nobody measured it: 10 GB/s.
inline constexpr PerByte usual_copying{0.1};

}  // namespace railmux::model

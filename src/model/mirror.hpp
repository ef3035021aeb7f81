// Mirror: the other end of a probe. It answers each train once, after its last message, and says how long the answer
// lay here, so that a process that was busy elsewhere does not look like a slow network.
//
//   on a probe request:  if (mirror.arrived(request, seen)) send mirror.reply(now) with as much payload, in the same way
//
// `now` of reply() is taken as late as can be before the send. Once arrived() said yes, the reply may wait in a queue
// for as long as it must: it is taken out of the measurement.
//
// Threads: one thread at a time per object; one object for each link.
// Lifetime: owns what it knows.
#pragma once

#include <cstdint>

#include "model/probe_wire.hpp"

namespace railmux::model {

/// How a message came in, in the words of Sample.
struct Seen {
    base::Nanoseconds at = 0;           // when the receive that brought it ended
    base::Nanoseconds blind = 0;        // before that receive nobody had looked for so long
    base::Nanoseconds receive_cpu = 0;  // its share of the time inside the receive; 0: not taken
};

class Mirror {
public:
    /// True when the train is complete and its reply is due. Trains may begin anew at any time: of two that mix, the
    /// one begun later is answered.
    [[nodiscard]] bool arrived(const ProbeRequest& request, const Seen& seen) noexcept;

    /// The reply to the train that was completed last.
    [[nodiscard]] ProbeReply reply(base::Nanoseconds now) const noexcept;

private:
    ProbeRequest train_{};
    std::uint16_t count_ = 0;  // messages of it that came
    Seen last_{};
    base::Nanoseconds receive_cpu_ = 0;  // the least of any message: what waits in the way only adds
};

}  // namespace railmux::model

// LinkHost: what those who look after links ask of the rail manager.
//
// Threads: one engine at a time.
// Lifetime: whoever asks is owned by the rail manager.
#pragma once

#include <string_view>

#include "base/clock.hpp"
#include "rails/frame.hpp"
#include "rails/link.hpp"

namespace railmux::rails {

class LinkHost {
public:
    /// The frame goes over this very link, behind what waits there.
    virtual void enqueue(Link& link, Frame* frame, base::Nanoseconds now) = 0;
    /// A live link is lost, by what we know of it, or one that is `leaving` ends: it is disconnected, and what it carried goes
    /// elsewhere.
    virtual void break_off(Link& link, std::string_view cause, base::Nanoseconds now) = 0;

protected:
    ~LinkHost() = default;
};

}  // namespace railmux::rails

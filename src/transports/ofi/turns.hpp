// Turns: who may ask the provider next, of the links to one endpoint, when it had no room for some of them. A flood on one of
// them would take all that comes free before the others ask.
//
// Threads: one engine at a time, as the rail that owns it.
// Lifetime: a value.
#pragma once

#include <vector>

#include "transports/transport.hpp"

namespace railmux::transports::ofi {

class Turns {
public:
    static constexpr int works = 16;    // of one turn
    static constexpr int patience = 8;  // others turned away before who has nothing to send loses its turn

    /// Nobody waits.
    [[nodiscard]] bool idle() const noexcept { return waiting_.empty(); }
    /// Whether the link may send a work; where the turn is another one's, it waits for its own.
    [[nodiscard]] bool may_ask(LinkId link) { return idle() || has_turn(link); }
    /// The provider had no room for it.
    void wait(LinkId link);
    /// The link is over.
    void forget(LinkId link) noexcept;

private:
    [[nodiscard]] bool has_turn(LinkId link);
    void next();

    std::vector<LinkId> waiting_;  // the longest first
    LinkId holder_;
    int left_ = 0;         // of the holder's works
    int turned_away_ = 0;  // since the first of those who wait has its turn
};

}  // namespace railmux::transports::ofi

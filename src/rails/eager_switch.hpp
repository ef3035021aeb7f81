// EagerSwitch: up to which size messages go along with their header, link by link, and to each peer.
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; refers to its rails and links.
#pragma once

#include <cstdint>
#include <vector>

#include <railmux/loggp.hpp>

#include "model/eager.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"

namespace railmux::rails {

class EagerSwitch {
public:
    struct Options {
        std::uint64_t most = model::EagerBounds{}.most;  // whatever the models say
        bool by_model = true;                            // false: always `most`
        bool measure = true;  // what copying and registering take; false: what is usual, the same each time
    };

    EagerSwitch(Options options, RailSet& rails, LinkTable& links);

    /// Over this link, by its model as it was measured. A guess is no reason for less than what fits a frame.
    [[nodiscard]] std::uint64_t max_over(const Link& link) const noexcept;
    /// Up to which size messages that no frame holds are better sent in several, of which this link carries that part; 0 where
    /// that is not left to the models. A guess will do: to ask takes two messages more, whatever the network.
    [[nodiscard]] std::uint64_t unasked_over(const Link& link, double part) const noexcept;
    /// To the peer, whose links, or a model of theirs, or which of them are spare, have changed: by the link that delivers
    /// first, spare ones left out.
    void choose(Conversation& talk) noexcept;
    /// There are more rails than there were.
    void measure_new_rails();

private:
    [[nodiscard]] Nanos opening() const noexcept;
    [[nodiscard]] model::EagerCosts costs_over(const Link& link) const noexcept;
    [[nodiscard]] double part_of(std::uint32_t place, const Conversation& talk) const noexcept;

    Options options_;
    RailSet& rails_;
    LinkTable& links_;
    PerByte copying_ = model::usual_copying;
    std::vector<double> region_ns_;  // by rail: what it takes to open memory of the largest size, and to close it
};

}  // namespace railmux::rails

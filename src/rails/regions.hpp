// Regions: memory of this process that is registered with rails, for bulk of one peer: to be put into, to be got from, or where
// pieces come from and go to.
//
// Threads: one engine at a time.
// Lifetime: refers to rails, peers and links of the rail manager that has it. Whoever opens a region closes it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <railmux/error.hpp>

#include "base/log.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"

namespace railmux::rails {

struct OpenRegion {
    std::uint32_t rail = 0;
    transports::Region region;
};

class Regions {
public:
    Regions(RailSet& rails, PeerTable& peers, LinkTable& links, base::Logger& log) noexcept
        : rails_(rails), peers_(peers), links_(links), log_(log) {}

    /// Opens `memory` to the peer's puts over every rail that can, also those that have no link to it now: one of them may
    /// be the last in the end. `regions` receives rail and region. False, and nothing is open, if nothing could come now.
    [[nodiscard]] bool open(std::uint32_t peer, std::span<std::byte> memory, std::vector<OpenRegion>& regions);
    /// Opens `memory` to the peer's gets over the rails that lead to it and can: over none, perhaps.
    void open_source(std::uint32_t peer, std::span<std::byte> memory, std::vector<OpenRegion>& regions);
    void close(std::vector<OpenRegion>& regions) noexcept;

    /// Registers memory that bulk of the peer over this rail comes from or goes to, until close_local: after the last frame
    /// that names it in its pieces is released. Nothing where the rail cannot: then it copies.
    [[nodiscard]] std::optional<transports::Region> open_local(std::uint32_t peer, std::uint32_t rail,
                                                               std::span<std::byte> memory, transports::Access access);
    void close_local(std::uint32_t rail, const transports::Region& region) noexcept;
    /// One that was open already made another needless.
    void reused_local(std::uint32_t peer, std::uint32_t rail) noexcept;

    /// What is got comes without a frame, and so without a checksum.
    [[nodiscard]] bool gets_over(const Link& link) const noexcept {
        return rails_[link.rail].traits().get && !link.checksum;
    }

private:
    [[nodiscard]] base::Result<transports::Region> add(std::uint32_t peer, std::uint32_t rail,
                                                       std::span<std::byte> memory, transports::Access access);
    [[nodiscard]] bool reaches(std::uint32_t peer, std::uint32_t rail) const;

    RailSet& rails_;
    PeerTable& peers_;
    LinkTable& links_;
    base::Logger& log_;
};

}  // namespace railmux::rails

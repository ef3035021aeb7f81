// SourceRegions: the memory of one large message, registered with the rails that then need not copy it. Pieces of it are
// registered as they come up, so that the first bytes leave while the rest is not yet registered, and a rail that carries
// little registers little.
//
// Threads: one engine at a time.
// Lifetime: of its transfer. drop() comes after the last frame that names a region is released, and before destruction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rails/rail_manager.hpp"

namespace railmux::messaging {

class SourceRegions {
public:
    /// What of the memory `piece` is registered together: of 4 MiB the pages are held within a small part of the time that
    /// they take on the wire.
    static constexpr std::uint64_t chunk = 4 << 20;

    /// The region, in terms of `rail`, that the bytes from `offset` on in `piece` lie in; 0 if they are to be copied. `bytes`,
    /// how many are wanted, becomes how many of them that holds for.
    [[nodiscard]] std::uint64_t covering(rails::RailManager& rails, std::uint32_t rail,
                                         const transports::Segment& piece, std::uint64_t offset, std::uint64_t& bytes);
    void drop(rails::RailManager& rails) noexcept;

private:
    struct Entry {
        std::uint32_t rail = 0;
        std::span<std::byte> memory;
        bool open = false;  // false: it was not to be had, or not worth it
        transports::Region region;
    };
    std::vector<Entry> entries_;
};

}  // namespace railmux::messaging

// LocalRegions: this process's memory of one large transfer, registered with the rails that then need not copy it. What lies
// in memory that the application has registered is used as it is. Of other memory parts are registered as they come up, so
// that the first bytes move while the rest is not yet registered and a rail that carries little registers little; and let go
// when the rail has gone on to another part and everything of this one is over, so that little is held at a time.
//
// Threads: one engine at a time.
// Lifetime: of its transfer. drop() comes after the last frame that names a region is released, and before destruction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "messaging/lasting_regions.hpp"
#include "rails/rail_manager.hpp"

namespace railmux::messaging {

class LocalRegions {
public:
    struct Use {
        rails::RailManager& rails;
        LastingRegions& lasting;
        std::uint32_t peer = 0;  // of the transfer
        transports::Access access = transports::Access::local;
    };

    /// The region, in terms of `rail`, that the bytes from `offset` on in `piece` lie in; 0 if they are to be copied. `bytes`,
    /// how many are wanted, becomes how many of them that holds for. Each call is followed by a release().
    [[nodiscard]] std::uint64_t covering(const Use& use, std::uint32_t rail, const transports::Segment& piece,
                                         std::uint64_t offset, std::uint64_t& bytes);
    /// What `rail` was to carry from or to `at` is over.
    void release(const Use& use, std::uint32_t rail, const std::byte* at) noexcept;
    void drop(const Use& use) noexcept;

private:
    /// They do not overlap, as far as they are one rail's.
    struct Entry {
        std::uint32_t rail = 0;
        std::span<std::byte> memory;
        std::uint32_t named = 0;  // covering() without release()
        bool passed = false;      // the rail has gone on to another one
        bool open = false;        // false: it was not to be had, or not worth it
        transports::Region region;
        LastingRegions::Known* lasting = nullptr;  // whose registration it is; null: its own
    };

    [[nodiscard]] Entry* find(std::uint32_t rail, const std::byte* at) noexcept;
    [[nodiscard]] Entry make(const Use& use, std::uint32_t rail, std::span<std::byte> memory,
                             std::uint64_t whole) const;
    Entry& add(const Use& use, const Entry& entry);
    static void close(const Use& use, const Entry& entry) noexcept;

    std::vector<Entry> entries_;
};

}  // namespace railmux::messaging

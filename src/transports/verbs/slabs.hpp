// Slabs: registered memory in pieces of one size, for frames and bulk on their way. The one used last is the next to be
// used, while it is still in the caches.
//
// Threads: one engine at a time, as the rail that owns it.
// Lifetime: outlives every queue pair and receive queue that its pieces are posted to; ends before its protection domain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transports/verbs/fabric.hpp"

namespace railmux::transports::verbs {

inline constexpr std::uint32_t no_slab = ~std::uint32_t{0};

class Slabs {
public:
    struct Slab {
        std::byte* data = nullptr;
        std::uint32_t key = 0;  // for the device
    };

    /// `node` of the host's memory: the device's own, or -1.
    Slabs(std::size_t slab_bytes, int node) noexcept : slab_bytes_(slab_bytes), node_(node) {}

    /// Makes `count` more of them; errno where the device refuses, else 0.
    [[nodiscard]] int grow(ibv_pd* domain, std::size_t count);
    [[nodiscard]] std::size_t total() const noexcept { return slabs_.size(); }
    [[nodiscard]] std::size_t free() const noexcept { return free_.size(); }

    /// Only while free() > 0.
    [[nodiscard]] std::uint32_t take() noexcept;
    void give(std::uint32_t slab) noexcept { free_.push_back(slab); }  // never beyond what grow() reserved
    [[nodiscard]] const Slab& operator[](std::uint32_t slab) const noexcept { return slabs_[slab]; }

private:
    struct Unmap {
        std::size_t bytes = 0;
        void operator()(std::byte* memory) const noexcept;
    };
    struct Chunk {
        std::unique_ptr<std::byte, Unmap> memory;
        MemoryRegion region;
    };

    std::size_t slab_bytes_;
    int node_;
    std::vector<Chunk> chunks_;
    std::vector<Slab> slabs_;
    std::vector<std::uint32_t> free_;
};

}  // namespace railmux::transports::verbs

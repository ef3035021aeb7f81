// Board: which regions of a rail others may get from, for all to read who have a link with it. Whoever gets reads the owner's
// memory by itself (other_process.hpp), so that nothing has to be asked: the owner may be computing. It looks here before, at
// what it may read, and once more afterwards: what was dropped meanwhile counts as not read.
//
// Others map it to be read only. It can tell them nothing that they could not see in the owner's memory, as they may trace it.
//
// Threads: written by its rail.
// Lifetime: as the mapping it lies in. All zero is an empty Board.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transports/transport.hpp"

namespace railmux::transports::shm {

/// A region that may be got from. Its place here is the id of its key.
struct alignas(32) Shown {
    std::atomic<std::uint64_t> secret;  // 0: none is here
    std::atomic<std::uint64_t> address;
    std::atomic<std::uint64_t> bytes;
};

struct Board {
    static constexpr std::size_t size = 2048;  // regions beyond that are put from
    std::array<Shown, size> regions;

    void show(const RegionKey& key, std::span<const std::byte> memory) noexcept {
        if (key.id >= size) return;
        auto& region = regions[key.id];
        region.address.store(reinterpret_cast<std::uintptr_t>(memory.data()), std::memory_order_relaxed);
        region.bytes.store(memory.size(), std::memory_order_relaxed);
        region.secret.store(key.secret, std::memory_order_release);
    }
    /// Who still reads it sees that before it sees what its owner writes there next.
    void hide(const RegionKey& key) noexcept;
    [[nodiscard]] bool shows(const RegionKey& key) const noexcept {
        return key.id < size && key.secret != 0 && regions[key.id].secret.load(std::memory_order_acquire) == key.secret;
    }
    /// Where those bytes of the region lie in its owner's memory; 0: they may not be read.
    [[nodiscard]] std::uint64_t address_of(const RegionKey& key, std::uint64_t offset,
                                           std::uint64_t bytes) const noexcept {
        if (!shows(key)) return 0;
        const auto& region = regions[key.id];
        const auto all = region.bytes.load(std::memory_order_relaxed);
        if (offset > all || bytes > all - offset) return 0;
        return region.address.load(std::memory_order_relaxed) + offset;
    }
};

}  // namespace railmux::transports::shm

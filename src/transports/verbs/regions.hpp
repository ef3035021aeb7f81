// Regions: memory that other processes may reach through the device.
//
// A device checks a key of 32 bits, which is soon guessed; but it also lets us choose the address by which a region is known to
// others. That address is random: 51 bits beside the key, which the device itself checks, because another place lies outside.
//
// Threads: one engine at a time, as the rail that owns it.
// Lifetime: ends before the protection domain.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transports/transport.hpp"
#include "transports/verbs/fabric.hpp"

namespace railmux::transports::verbs {

class Regions {
public:
    /// 0, or the errno with which the device refused.
    [[nodiscard]] int add(ibv_pd* domain, std::span<std::byte> memory, Access access, Region& region);
    void drop(const Region& region) noexcept;

    /// What a put needs of a key.
    [[nodiscard]] static std::uint32_t device_key(const RegionKey& key) noexcept {
        return static_cast<std::uint32_t>(key.id);
    }
    [[nodiscard]] static std::uint64_t base_address(const RegionKey& key) noexcept { return key.secret; }

private:
    struct Entry {
        MemoryRegion memory;
        std::uint64_t secret = 0;
    };
    std::vector<Entry> entries_;  // the upper half of RegionKey::id is the place here
    std::vector<std::uint32_t> free_;
};

}  // namespace railmux::transports::verbs

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
    /// 0, or the errno with which the device refused. What is opened to nobody is known by its own address.
    [[nodiscard]] int add(ibv_pd* domain, std::span<std::byte> memory, Access access, Region& region);
    void drop(const Region& region) noexcept;

    /// What a put needs of the memory it comes from: the key in Region::local.
    [[nodiscard]] static std::uint32_t local_key(std::uint64_t local) noexcept {
        return static_cast<std::uint32_t>(local);
    }
    /// What a put needs of a key.
    [[nodiscard]] static std::uint32_t device_key(const RegionKey& key) noexcept {
        return static_cast<std::uint32_t>(key.id);
    }
    [[nodiscard]] static std::uint64_t base_address(const RegionKey& key) noexcept { return key.secret; }

private:
    static constexpr std::uint64_t is_local = std::uint64_t{1} << 32;  // in Region::local: a key may be 0, it may not

    [[nodiscard]] std::uint32_t take_slot();

    struct Entry {
        MemoryRegion memory;
        std::uint64_t secret = 0;
    };
    std::vector<Entry> entries_;  // the upper half of RegionKey::id is the place here
    std::vector<std::uint32_t> free_;
};

}  // namespace railmux::transports::verbs

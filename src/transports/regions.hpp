// RegionTable: registered memory by key, for rails that place bytes themselves.
//
// Threads: one engine at a time, as the rail that owns it.
// Lifetime: views memory that its owner keeps until it drops the region.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transports/transport.hpp"

namespace railmux::transports {

class RegionTable {
public:
    [[nodiscard]] Region add(std::span<std::byte> memory, Access access);
    void drop(const Region& region) noexcept;

    /// The bytes [offset, offset + length) of the region, if the key is right, the region in bounds and the right granted.
    [[nodiscard]] std::optional<std::span<std::byte>> find(const RegionKey& key, std::uint64_t offset,
                                                           std::uint64_t length, Access wanted) noexcept;

private:
    struct Entry {
        std::span<std::byte> memory;
        std::uint64_t secret = 0;
        Access access = Access::local;
        bool used = false;
    };
    std::vector<Entry> entries_;  // RegionKey::id is the place here
    std::vector<std::uint64_t> free_;
    // Secrets come from the kernel's random source, many in one system call: a region is made for each large message.
    std::array<std::uint64_t, 64> secrets_{};
    std::size_t secrets_left_ = 0;
};

}  // namespace railmux::transports

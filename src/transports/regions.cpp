#include "transports/regions.hpp"

#include "base/crypto.hpp"

namespace railmux::transports {

Region RegionTable::add(std::span<std::byte> memory, Access access) {
    if (free_.empty()) {
        free_.reserve(entries_.size() + 1);
        free_.push_back(entries_.size());
        entries_.emplace_back();
    }
    const auto id = free_.back();
    free_.pop_back();
    if (secrets_left_ == 0) {
        base::fill_random(std::as_writable_bytes(std::span(secrets_)));
        secrets_left_ = secrets_.size();
    }
    auto& entry = entries_[id];
    entry = {memory, secrets_[--secrets_left_], access, true};
    return {{id, entry.secret}, 0};
}

void RegionTable::drop(const Region& region) noexcept {
    if (region.key.id >= entries_.size()) return;
    auto& entry = entries_[region.key.id];
    if (!entry.used || entry.secret != region.key.secret) return;
    entry = {};
    free_.push_back(region.key.id);
}

std::optional<std::span<std::byte>> RegionTable::find(const RegionKey& key, std::uint64_t offset, std::uint64_t length,
                                                      Access wanted) noexcept {
    if (key.id >= entries_.size()) return std::nullopt;
    const auto& entry = entries_[key.id];
    const auto rights = static_cast<unsigned>(entry.access) & static_cast<unsigned>(wanted);
    if (!entry.used || entry.secret != key.secret || rights != static_cast<unsigned>(wanted) ||
        offset > entry.memory.size() || length > entry.memory.size() - offset) {
        return std::nullopt;
    }
    return entry.memory.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
}

}  // namespace railmux::transports

#include "transports/verbs/regions.hpp"

#include <cerrno>

#include "base/crypto.hpp"

namespace railmux::transports::verbs {

namespace {

constexpr std::uint64_t page_mask = 4095;
constexpr std::uint64_t lower_half = ~std::uint64_t{0} >> 1;

/// Memory that is only read may be read-only: no right to write to it is asked for then.
int device_access(Access access) noexcept {
    const auto has = [&](Access wanted) {
        return (static_cast<unsigned>(access) & static_cast<unsigned>(wanted)) != 0;
    };
    int flags = 0;
    if (has(Access::remote_read)) flags |= IBV_ACCESS_REMOTE_READ;
    if (has(Access::remote_write)) flags |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
    if (has(Access::local_write)) flags |= IBV_ACCESS_LOCAL_WRITE;
    return flags;
}

}  // namespace

int Regions::add(ibv_pd* domain, std::span<std::byte> memory, Access access, Region& region) {
    MemoryRegion made;
    if (access == Access::local || access == Access::local_write) {
        made = register_memory(domain, memory.data(), memory.size(), device_access(access));
        if (!made) return errno;
        const auto slot = take_slot();
        region = {.key = {std::uint64_t{slot} << 32, base::random_u64()}, .local = is_local | made->lkey};
        entries_[slot] = {std::move(made), region.key.secret};
        return 0;
    }
    // Devices want the place within a page to stay; in the lower half of the addresses no offset leads over their end.
    const auto place = reinterpret_cast<std::uint64_t>(memory.data()) & page_mask;
    const auto secret = (base::random_u64() & lower_half & ~page_mask) | place;
    if (!memory.empty()) {  // nothing can be reached in nothing
        made.reset(ibv_reg_mr_iova(domain, memory.data(), memory.size(), secret, device_access(access)));
        if (!made) return errno;
    }
    const auto slot = take_slot();
    region.key = {std::uint64_t{slot} << 32 | (made ? made->rkey : 0), secret};
    entries_[slot] = {std::move(made), secret};
    return 0;
}

std::uint32_t Regions::take_slot() {
    if (free_.empty()) {
        free_.reserve(entries_.size() + 1);  // for drop(), which must not fail
        entries_.emplace_back();
        return static_cast<std::uint32_t>(entries_.size() - 1);
    }
    const auto slot = free_.back();
    free_.pop_back();
    return slot;
}

void Regions::drop(const Region& region) noexcept {
    const auto slot = region.key.id >> 32;
    if (slot >= entries_.size() || entries_[slot].secret != region.key.secret) return;
    entries_[slot] = {};
    free_.push_back(static_cast<std::uint32_t>(slot));
}

}  // namespace railmux::transports::verbs

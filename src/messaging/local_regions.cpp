#include "messaging/local_regions.hpp"

#include <algorithm>

namespace railmux::messaging {

namespace {
constexpr std::uint64_t chunk = LastingRegions::chunk;
}

std::uint64_t LocalRegions::covering(const Use& use, std::uint32_t rail, const transports::Segment& piece,
                                     std::uint64_t offset, std::uint64_t& bytes) {
    auto* const at = piece.data + offset;
    Entry* entry = find(rail, at);
    if (entry == nullptr) {
        const auto end = std::min<std::uint64_t>(offset / chunk * chunk + chunk, piece.size);
        entry = &add(use, make(use, rail, {at, static_cast<std::size_t>(end - offset)}, end - offset / chunk * chunk));
    }
    bytes =
        std::min<std::uint64_t>(bytes, static_cast<std::uint64_t>(entry->memory.data() + entry->memory.size() - at));
    ++entry->named;
    return entry->region.local;
}

LocalRegions::Entry* LocalRegions::find(std::uint32_t rail, const std::byte* at) noexcept {
    const auto place = std::ranges::find_if(entries_, [&](const Entry& entry) {
        return entry.rail == rail && at >= entry.memory.data() && at < entry.memory.data() + entry.memory.size();
    });
    return place == entries_.end() ? nullptr : &*place;
}

/// What covers the beginning of `memory`, the rest of a part of `whole` bytes.
LocalRegions::Entry LocalRegions::make(const Use& use, std::uint32_t rail, std::span<std::byte> memory,
                                       std::uint64_t whole) const {
    // Not what another entry covers: an older one of the same rail, or another piece of the same memory.
    for (const auto& other : entries_) {
        if (other.rail != rail || other.memory.data() < memory.data()) continue;
        memory = memory.first(std::min(memory.size(), static_cast<std::size_t>(other.memory.data() - memory.data())));
    }
    if (const auto part = use.lasting.use(use.peer, rail, memory.data())) {
        const auto before = static_cast<std::size_t>(memory.data() - part->memory.data());
        return {.rail = rail,
                .memory = memory.first(std::min(memory.size(), part->memory.size() - before)),
                .open = true,
                .region = {.key = {}, .local = part->local},
                .lasting = part->known};
    }
    if (whole < use.rails.traits(rail).register_from) return {.rail = rail, .memory = memory};
    const auto region = use.rails.regions().open_local(use.peer, rail, memory, use.access);
    return {
        .rail = rail, .memory = memory, .open = region.has_value(), .region = region.value_or(transports::Region{})};
}

LocalRegions::Entry& LocalRegions::add(const Use& use, const Entry& entry) {
    std::erase_if(entries_, [&](Entry& other) {
        if (other.rail != entry.rail) return false;
        other.passed = true;
        if (other.named == 0) close(use, other);
        return other.named == 0;
    });
    return entries_.emplace_back(entry);
}

void LocalRegions::release(const Use& use, std::uint32_t rail, const std::byte* at) noexcept {
    Entry* entry = find(rail, at);
    if (entry == nullptr || --entry->named > 0 || !entry->passed) return;
    close(use, *entry);
    entries_.erase(entries_.begin() + (entry - entries_.data()));
}

void LocalRegions::close(const Use& use, const Entry& entry) noexcept {
    if (entry.lasting != nullptr) {
        use.lasting.release(*entry.lasting);
    } else if (entry.open) {
        use.rails.regions().close_local(entry.rail, entry.region);
    }
}

void LocalRegions::drop(const Use& use) noexcept {
    for (const auto& entry : entries_) close(use, entry);
    entries_.clear();
}

}  // namespace railmux::messaging

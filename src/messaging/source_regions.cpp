#include "messaging/source_regions.hpp"

#include <algorithm>

namespace railmux::messaging {

std::uint64_t SourceRegions::covering(rails::RailManager& rails, std::uint32_t rail, const transports::Segment& piece,
                                      std::uint64_t offset, std::uint64_t& bytes) {
    if (!rails.registers(rail)) return 0;
    const auto begin = offset / chunk * chunk;
    const auto end = std::min<std::uint64_t>(begin + chunk, piece.size);
    bytes = std::min(bytes, end - offset);
    const std::span memory(piece.data + begin, end - begin);
    // The newest are wanted again.
    const auto known = std::find_if(entries_.rbegin(), entries_.rend(), [&](const Entry& entry) {
        return entry.rail == rail && entry.memory.data() == memory.data() && entry.memory.size() == memory.size();
    });
    if (known != entries_.rend()) return known->region.local;
    const auto region = rails.open_source(rail, memory);
    entries_.push_back({rail, memory, region.has_value(), region.value_or(transports::Region{})});
    return entries_.back().region.local;
}

void SourceRegions::drop(rails::RailManager& rails) noexcept {
    for (const auto& entry : entries_) {
        if (entry.open) rails.close_source(entry.rail, entry.region);
    }
    entries_.clear();
}

}  // namespace railmux::messaging

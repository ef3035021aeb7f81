#include "rails/regions.hpp"

#include <algorithm>
#include <utility>

namespace railmux::rails {

bool Regions::reaches(std::uint32_t peer, std::uint32_t rail) const {
    const auto* talk = peers_[peer].talk.get();
    return talk != nullptr && std::ranges::any_of(talk->links, [&](auto slot) { return links_.at(slot).rail == rail; });
}

bool Regions::open(std::uint32_t peer, std::span<std::byte> memory, std::vector<OpenRegion>& regions) {
    regions.clear();
    bool linked = false, open = false;
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
        if (!rails_[rail].up && !rails_[rail].traits().comes_back) continue;
        auto region = add(peer, rail, memory, transports::Access::remote_write);
        const bool leads_there = reaches(peer, rail);
        linked = linked || leads_there;
        if (region) {
            regions.push_back({rail, region.value()});
            open = open || leads_there;
        } else if (rails_[rail].up) {
            log_.warning("rail {}: {} bytes cannot be registered, so it carries none of this message: {}",
                         rails_[rail].traits().name, memory.size(), region.error().what());
        }
    }
    // Without any link it will come over one that is made again.
    if (open || (!linked && !regions.empty())) return true;
    close(regions);
    return false;
}

void Regions::open_source(std::uint32_t peer, std::span<std::byte> memory, std::vector<OpenRegion>& regions) {
    regions.clear();
    const auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    for (const auto slot : talk->links) {
        const auto rail = links_.at(slot).rail;
        const bool open = std::ranges::any_of(regions, [&](const auto& region) { return region.rail == rail; });
        if (open || !gets_over(links_.at(slot))) continue;
        if (auto region = add(peer, rail, memory, transports::Access::remote_read)) {
            regions.push_back({rail, region.value()});
        }
    }
}

void Regions::close(std::vector<OpenRegion>& regions) noexcept {
    for (const auto& open : regions) close_local(open.rail, open.region);
    regions.clear();
}

/// Counts what is made.
base::Result<transports::Region> Regions::add(std::uint32_t peer, std::uint32_t rail, std::span<std::byte> memory,
                                              transports::Access access) {
    auto region = rails_[rail].rail->add_region(memory, access);
    auto* const traffic = peers_[peer].traffic.get();
    if (region && traffic != nullptr && rails_[rail].traits().pins) {
        ++traffic[rail].registrations;
        traffic[rail].registered_bytes += memory.size();
    }
    return region;
}

std::optional<transports::Region> Regions::open_local(std::uint32_t peer, std::uint32_t rail,
                                                      std::span<std::byte> memory, transports::Access access) {
    auto& entry = rails_[rail];
    if (!entry.up) return std::nullopt;
    auto region = add(peer, rail, memory, access);
    if (region) return region.value();
    if (!std::exchange(entry.copies, true)) {
        log_.warning("rail {}: {} bytes cannot be registered, so they are copied, as others may be from now on: {}",
                     entry.traits().name, memory.size(), region.error().what());
    }
    return std::nullopt;
}

void Regions::close_local(std::uint32_t rail, const transports::Region& region) noexcept {
    rails_[rail].rail->drop_region(region);
}

void Regions::reused_local(std::uint32_t peer, std::uint32_t rail) noexcept {
    ++peers_[peer].traffic[rail].registrations_reused;
}

}  // namespace railmux::rails

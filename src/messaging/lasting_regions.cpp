#include "messaging/lasting_regions.hpp"

#include <algorithm>

namespace railmux::messaging {

/// One region of the application.
struct LastingRegions::Known {
    std::uint32_t id = 0;
    std::span<std::byte> memory;
    bool removed = false;
    std::uint32_t users = 0;
    // Each by part; empty where the rail has not used it.
    std::vector<std::vector<std::optional<transports::Region>>> by_rail;
};

LastingRegions::LastingRegions(rails::RailManager& rails) : rails_(rails) {}

LastingRegions::~LastingRegions() {
    for (const auto& [begin, known] : known_) close(*known);
    for (const auto& known : parting_) close(*known);
}

void LastingRegions::add(std::uint32_t id, std::span<std::byte> memory) {
    auto known = std::make_unique<Known>();
    known->id = id;
    known->memory = memory;
    longest_ = std::max(longest_, memory.size());
    known_.emplace(memory.data(), std::move(known));
}

void LastingRegions::remove(std::uint32_t id, std::span<std::byte> memory) noexcept {
    const auto [first, last] = known_.equal_range(memory.data());
    const auto place = std::find_if(first, last, [&](const auto& entry) { return entry.second->id == id; });
    if (place == last) return;
    auto known = std::move(place->second);
    known_.erase(place);
    known->removed = true;
    if (known->users > 0) {
        parting_.push_back(std::move(known));
    } else {
        close(*known);
    }
}

/// Regions may overlap, so it need not be the last that begins before; but none that begins too early reaches so far.
LastingRegions::Known* LastingRegions::find(const std::byte* at) const noexcept {
    for (auto place = known_.upper_bound(at); place != known_.begin();) {
        --place;
        const auto before = static_cast<std::size_t>(at - place->first);
        if (before < place->second->memory.size()) return place->second.get();
        if (before >= longest_) return nullptr;
    }
    return nullptr;
}

bool LastingRegions::covers(const transports::Segment& piece) const noexcept {
    const auto* known = find(piece.data);
    if (known == nullptr) return false;
    return piece.size <= static_cast<std::size_t>(known->memory.data() + known->memory.size() - piece.data);
}

std::optional<LastingRegions::Part> LastingRegions::use(std::uint32_t peer, std::uint32_t rail, const std::byte* at) {
    if (!rails_.traits(rail).reuses_regions) return std::nullopt;
    Known* known = find(at);
    if (known == nullptr) return std::nullopt;
    if (rail >= known->by_rail.size()) known->by_rail.resize(rail + 1);
    auto& parts = known->by_rail[rail];
    if (parts.empty()) parts.resize((known->memory.size() + chunk - 1) / chunk);
    const auto number = static_cast<std::size_t>(at - known->memory.data()) / chunk;
    const auto begin = number * chunk;
    const auto memory = known->memory.subspan(begin, std::min(chunk, known->memory.size() - begin));
    auto& part = parts[number];
    if (part) {
        rails_.regions().reused_local(peer, rail);
    } else {
        part = rails_.regions().open_local(peer, rail, memory, transports::Access::local_write);
    }
    if (!part) return std::nullopt;
    ++known->users;
    return Part{known, memory, part->local};
}

void LastingRegions::release(Known& known) noexcept {
    if (--known.users > 0 || !known.removed) return;
    close(known);
    std::erase_if(parting_, [&](const auto& parting) { return parting.get() == &known; });
}

void LastingRegions::close(Known& known) noexcept {
    for (std::uint32_t rail = 0; rail < known.by_rail.size(); ++rail) {
        for (const auto& part : known.by_rail[rail]) {
            if (part) rails_.regions().close_local(rail, *part);
        }
    }
    known.by_rail.clear();
}

}  // namespace railmux::messaging

// LinkSlots: the links of one rail by LinkId. A stale id finds nothing.
//
// Threads: one engine at a time, as the rail that owns it.
// Lifetime: a pointer from find() is good until that link is released; adding others does not move it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/stable_vector.hpp"
#include "transports/transport.hpp"

namespace railmux::transports {

template <typename Link>
class LinkSlots {
public:
    LinkId add(Link link) {
        if (free_.empty()) {
            free_.push_back(static_cast<std::uint32_t>(slots_.size()));
            slots_.add();
        }
        const auto index = free_.back();
        free_.pop_back();
        slots_[index].link.emplace(std::move(link));
        return {index, slots_[index].generation};
    }

    void release(LinkId id) {
        if (find(id) == nullptr) return;
        slots_[id.index].link.reset();
        ++slots_[id.index].generation;
        free_.push_back(id.index);
    }

    [[nodiscard]] Link* find(LinkId id) noexcept {
        if (id.index >= slots_.size()) return nullptr;
        auto& slot = slots_[id.index];
        return slot.link && slot.generation == id.generation ? &*slot.link : nullptr;
    }
    [[nodiscard]] const Link* find(LinkId id) const noexcept { return const_cast<LinkSlots*>(this)->find(id); }

    /// The links there are now, for loops that end some of them.
    [[nodiscard]] std::vector<LinkId> ids() const {
        std::vector<LinkId> all;
        for (std::size_t i = 0; i < slots_.size(); ++i) {
            if (slots_[i].link) all.push_back({static_cast<std::uint32_t>(i), slots_[i].generation});
        }
        return all;
    }

private:
    struct Slot {
        std::optional<Link> link;
        std::uint32_t generation = 1;  // not 0: a default LinkId with a real index names no link
    };
    base::StableVector<Slot> slots_;
    std::vector<std::uint32_t> free_;
};

}  // namespace railmux::transports

// LinkTable: the links of one rail by LinkId and by place, where a link keeps its place while its last events are waiting for
// a poll: place and id are given to others only after the poll that handed out its link_down. LinkSlots is for rails whose
// links are gone at once.
//
// Threads: one engine at a time, as the rail that owns it.
// Lifetime: a link stays where it is for the table's life; its content until another takes the place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/stable_vector.hpp"
#include "transports/transport.hpp"

namespace railmux::transports {

/// Link has the members `id`; `phase`, an enumeration with `free`, for links that are over; and `undone`, the works accepted
/// whose done has not been handed out.
template <typename Link>
class LinkTable {
public:
    using Phase = decltype(Link::phase);

    /// A link as its default constructor makes it, but for id and phase.
    Link& add(Phase phase) {
        std::uint32_t index = 0;
        if (free_.empty()) {
            index = static_cast<std::uint32_t>(links_.size());
            links_.add();
        } else {
            index = free_.back();
            free_.pop_back();
        }
        Link& link = links_[index];
        const auto generation = link.id.generation + 1;  // never 0: a default LinkId with a real index names no link
        link = Link{};
        link.id = {index, generation};
        link.phase = phase;
        return link;
    }

    /// nullptr: it is over, or its place is another's.
    [[nodiscard]] Link* find(LinkId id) noexcept {
        if (id.index >= links_.size()) return nullptr;
        Link& link = links_[id.index];
        return link.id == id && link.phase != Phase::free ? &link : nullptr;
    }

    /// The same of one that is in that phase.
    [[nodiscard]] Link* find(LinkId id, Phase phase) noexcept {
        if (id.index >= links_.size()) return nullptr;
        Link& link = links_[id.index];
        return link.id == id && link.phase == phase ? &link : nullptr;
    }

    /// At that place, over or not.
    [[nodiscard]] Link& operator[](std::uint32_t index) noexcept { return links_[index]; }
    [[nodiscard]] const Link& operator[](std::uint32_t index) const noexcept { return links_[index]; }
    [[nodiscard]] std::size_t size() const noexcept { return links_.size(); }

    template <typename Visit>
    void for_each(Visit visit) {
        links_.for_each(visit);
    }

    /// Nothing comes of that link any more but what the last poll handed out.
    void retire(LinkId id) { retired_.push_back(id.index); }
    void reuse_retired() {
        if (retired_.empty()) return;
        for (const auto index : retired_) free_.push_back(index);
        retired_.clear();
    }

private:
    base::StableVector<Link> links_;
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> retired_;
};

}  // namespace railmux::transports

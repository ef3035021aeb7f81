#include "rails/link.hpp"

#include <cassert>

#include "rails/assessor.hpp"

namespace railmux::rails {

Link::Link() = default;
Link::Link(Link&&) noexcept = default;
Link& Link::operator=(Link&&) noexcept = default;
Link::~Link() = default;

Link& LinkTable::add(std::uint32_t rail, transports::LinkId id) {
    if (free_.empty()) {
        free_.push_back(static_cast<std::uint32_t>(links_.size()));
        links_.add();
    }
    const auto slot = free_.back();
    free_.pop_back();
    ++count_[rail];
    ++changes_;
    auto& index = by_rail_[rail];
    if (id.index >= index.size()) index.resize(id.index + 1);

    Link& link = links_[slot];
    index[id.index] = &link;
    link = Link{};
    link.slot = slot;
    link.rail = rail;
    link.id = id;
    return link;
}

void LinkTable::remove(Link& link) {
    assert(link.outbox.empty());
    auto& place = by_rail_[link.rail][link.id.index];
    if (place == &link) place = nullptr;
    link.state = LinkState::free;
    --count_[link.rail];
    ++changes_;
    link.setup.reset();
    link.assessed.reset();
    link.probe_puts.reset();
    free_.push_back(link.slot);
}

/// A rail may give the index to a new link before the old one's last events have been polled. That is rare.
Link* LinkTable::find_old(std::uint32_t rail, transports::LinkId id) noexcept {
    for (std::size_t slot = 0; slot < links_.size(); ++slot) {
        Link& link = links_[slot];
        if (link.state != LinkState::free && link.rail == rail && link.id == id) return &link;
    }
    return nullptr;
}

}  // namespace railmux::rails

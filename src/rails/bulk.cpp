// RailManager: bulk: where it may be put, and which rail carries how much of it.
#include "rails/rail_manager.hpp"

namespace railmux::rails {

namespace {
// A share smaller than this costs its rail more in frames than it saves in time: at 1 Gbit/s 16 KiB take 131 us, some
// tens of times what a put and its closing frame cost a CPU.
constexpr std::uint64_t smallest_share = 16 * 1024;
}  // namespace

void RailManager::plan_bulk(std::uint32_t peer, const BulkTarget& target, std::uint64_t bytes, base::Nanoseconds now,
                            std::vector<RailShare>& shares) {
    shares.clear();
    bulk_candidates_.clear();
    const auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    for (std::size_t i = 0; i < talk->links.size(); ++i) {
        const Link& link = links_.at(talk->links[i]);
        if (target.key_for(link.remote_rail) == nullptr) continue;
        auto candidate = talk->candidates[i];
        candidate.queued_bytes = link.queued_bytes;
        bulk_candidates_.push_back(candidate);
    }
    if (bulk_candidates_.empty()) return;
    if (bytes < 2 * smallest_share) {
        shares.push_back({bulk_candidates_[policy_.choose(bulk_candidates_, bytes, now)].rail, bytes});
        return;
    }
    bulk_shares_.assign(bulk_candidates_.size(), 0);
    policy_.split(bulk_candidates_, bytes, now, bulk_shares_);
    const auto largest =
        static_cast<std::size_t>(std::max_element(bulk_shares_.begin(), bulk_shares_.end()) - bulk_shares_.begin());
    for (std::size_t i = 0; i < bulk_shares_.size(); ++i) {
        if (i != largest && bulk_shares_[i] < smallest_share)
            bulk_shares_[largest] += std::exchange(bulk_shares_[i], 0);
    }
    for (std::size_t i = 0; i < bulk_shares_.size(); ++i) {
        if (bulk_shares_[i] > 0) shares.push_back({bulk_candidates_[i].rail, bulk_shares_[i]});
    }
}

void RailManager::open_regions(std::span<std::byte> memory, std::vector<OpenRegion>& regions) {
    regions.clear();
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
        if (!rails_[rail].up) continue;
        auto region = rails_[rail].rail->add_region(memory, transports::Access::remote_write);
        if (region) {
            regions.push_back({rail, region.value()});
        } else {
            log_.warning("rail {}: {} bytes cannot be registered, so it carries none of this message: {}",
                         rails_[rail].traits().name, memory.size(), region.error().what());
        }
    }
}

void RailManager::close_regions(std::vector<OpenRegion>& regions) noexcept {
    for (const auto& open : regions) rails_[open.rail].rail->drop_region(open.region);
    regions.clear();
}

}  // namespace railmux::rails

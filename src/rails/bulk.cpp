// RailManager: bulk: where it may be put, or got from, and which rail carries how much of it.
#include "rails/rail_manager.hpp"

namespace railmux::rails {

namespace {
// A share smaller than this costs its rail more in frames than it saves in time: at 1 Gbit/s 16 KiB take 131 us, some
// tens of times what a put and its closing frame cost a CPU.
constexpr std::uint64_t smallest_share = 16 * 1024;

// Without a choice a link holds two pieces of bulk: one on its way, one to follow without a gap.
constexpr std::uint32_t bulk_per_link = 2;
// Where pieces are summed they are to be in the core's own cache still (1 MiB and less, with the kernel's copies of them) when
// they are sent, and when they have come: unshaped, pieces of 256 KiB were half as fast (docs/failover.md).
constexpr std::uint64_t summed_piece = 64 * 1024;

// With it a rail is given so much that it stays busy until the next acknowledgement (they may be kept back for 100 us, and
// the peer's engine for longer), and no more: what is handed over can no longer go another way.
constexpr base::Nanoseconds horizon = base::millisecond;
// A piece takes about this long: shorter ones follow the plan more closely, longer ones cost less.
constexpr base::Nanoseconds piece_time = base::millisecond / 4;
}  // namespace

// --- Handing over ----------------------------------------------------------------------------------------------------

void RailManager::offer_bulk(std::uint32_t peer, base::Nanoseconds now) {
    static_cast<void>(catch_up());  // the plan is made for what is known
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    if (!std::exchange(talk->bulk_offered, true)) bulk_peers_.push_back(peer);
    for (std::size_t i = 0; i < talk->links.size(); ++i) feed_bulk(links_.at(talk->links[i]), now);
}

/// All that have bulk, each time another one first, because they share the rails.
void RailManager::feed_all(base::Nanoseconds now) {
    ++next_fed_;
    for (std::size_t n = 0; n < bulk_peers_.size(); ++n) {
        auto& talk = *peers_[bulk_peers_[(next_fed_ + n) % bulk_peers_.size()]].talk;
        for (std::size_t i = 0; i < talk.links.size(); ++i) feed_bulk(links_.at(talk.links[i]), now);
    }
    std::erase_if(bulk_peers_, [&](std::uint32_t peer) {
        auto& talk = *peers_[peer].talk;
        bool left = talk.links.empty();
        for (const auto slot : talk.links) left = left || upper_.bulk_left(peer, links_.at(slot).remote_rail) > 0;
        if (left) return false;
        talk.bulk_offered = false;
        drop_claims(talk);
        return true;
    });
}

void RailManager::feed_bulk(Link& link, base::Nanoseconds now) {
    auto& talk = *peers_[link.peer].talk;
    while (talk.session.open_for_messages()) {
        const auto most = piece_for(link, now);
        if (most == 0) return;
        Frame* frame = upper_.next_bulk(link.peer, link.rail, link.remote_rail, most);
        if (frame == nullptr) return;
        number(talk, *frame);
        enqueue(link, frame, now);
    }
}

/// Whether the others, if there are any, are spare.
bool RailManager::only_choice(const Conversation& talk, const Link& link) noexcept {
    const auto usable = std::ranges::count(talk.candidates, false, &sched::Candidate::spare);
    return talk.links.size() == 1 || (usable == 1 && !talk.candidates[link.place].spare);
}

/// How much bulk the link should be given now.
std::uint64_t RailManager::piece_for(const Link& link, base::Nanoseconds now) {
    auto& talk = *peers_[link.peer].talk;
    const auto most = link.checksum ? std::min(options_.fragment, summed_piece) : options_.fragment;
    if (policy_.replans()) {
        replan(link.peer, talk, now);
    } else {
        ledger_.refresh(talk, now);
    }
    // With one link there is nothing to decide: it is kept full. What it claims still counts for other peers.
    if (!policy_.replans() || only_choice(talk, link)) return link.bulk < bulk_per_link ? most : 0;
    const auto claim = talk.claims[link.place];
    if (claim == 0) return 0;
    const auto& candidate = talk.candidates[link.place];
    const auto span = sched::to_ticks(horizon) + 4 * candidate.cost.latency;
    // Of a rail that others use, too, we fill what is ours: together they would line up work for many times as long.
    const auto per_byte = std::max(candidate.cost.per_byte, ledger_.pace(link.rail).own_per_byte());
    const auto enough =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(span / per_byte), ledger_.allowance(link.rail));
    if (link.unacked_bytes >= std::max(enough, 2 * smallest_share)) return 0;
    const auto piece = static_cast<std::uint64_t>(sched::to_ticks(piece_time) / candidate.cost.per_byte);
    return std::min(claim, std::clamp(piece, std::min(smallest_share, most), most));
}

/// Splits what is left for the peer over its links as they are now.
void RailManager::replan(std::uint32_t peer, Conversation& talk, base::Nanoseconds now) {
    drop_claims(talk);
    ledger_.refresh(talk, now);
    std::uint64_t left = 0;
    bulk_candidates_.clear();
    bulk_places_.clear();
    for (std::size_t i = 0; i < talk.links.size(); ++i) {
        const auto bytes = upper_.bulk_left(peer, links_.at(talk.links[i]).remote_rail);
        if (bytes == 0) continue;
        left = std::max(left, bytes);
        bulk_candidates_.push_back(talk.candidates[i]);
        bulk_candidates_.back().claimed = claims_[talk.candidates[i].rail];
        bulk_places_.push_back(i);
    }
    if (bulk_candidates_.empty()) return;
    bulk_shares_.assign(bulk_candidates_.size(), 0);
    policy_.split(bulk_candidates_, left, now, bulk_shares_);
    for (std::size_t i = 0; i < bulk_places_.size(); ++i) {
        talk.claims[bulk_places_[i]] = bulk_shares_[i];
        claims_[bulk_candidates_[i].rail] += bulk_shares_[i];
    }
}

void RailManager::drop_claims(Conversation& talk) noexcept {
    for (std::size_t i = 0; i < talk.claims.size(); ++i) {
        claims_[talk.candidates[i].rail] -= std::exchange(talk.claims[i], 0);
    }
}

// --- Getting ---------------------------------------------------------------------------------------------------------

void RailManager::open_source(std::uint32_t peer, std::span<std::byte> memory, std::vector<OpenRegion>& regions) {
    regions.clear();
    const auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    for (const auto slot : talk->links) {
        const auto rail = links_.at(slot).rail;
        const bool open = std::ranges::any_of(regions, [&](const auto& region) { return region.rail == rail; });
        if (open || !gets_over(links_.at(slot))) continue;
        if (auto region = add_region(peer, rail, memory, transports::Access::remote_read)) {
            regions.push_back({rail, region.value()});
        }
    }
}

bool RailManager::can_get(std::uint32_t peer, const BulkTarget& source, std::uint32_t rail) {
    const auto* talk = peers_[peer].talk.get();
    return talk != nullptr && std::ranges::any_of(talk->links, [&](auto slot) {
               return (rail == every_rail || links_.at(slot).rail == rail) && gets_from(slot, source);
           });
}

bool RailManager::getting_saves(std::uint32_t peer) {
    const auto* talk = peers_[peer].talk.get();
    return talk != nullptr && std::ranges::any_of(talk->links, [&](auto slot) {
               const Link& link = links_.at(slot);
               return gets_over(link) && rails_[link.rail].traits().reuses_regions;
           });
}

/// What is got comes without a frame, and so without a checksum.
bool RailManager::gets_over(const Link& link) const noexcept {
    return rails_[link.rail].traits().get && !link.checksum;
}

bool RailManager::gets_from(std::uint32_t slot, const BulkTarget& source) {
    const Link& link = links_.at(slot);
    return gets_over(link) && source.find(link.remote_rail) != nullptr;
}

bool RailManager::reaches(std::uint32_t peer, const BulkTarget& target) {
    const auto* talk = peers_[peer].talk.get();
    return talk != nullptr && std::ranges::any_of(talk->links, [&](auto slot) {
               const auto* key = target.find(links_.at(slot).remote_rail);
               return key != nullptr && !key->reserve;
           });
}

std::uint64_t RailManager::plan_gets(std::uint32_t peer, const BulkTarget& source, std::uint64_t bytes,
                                     base::Nanoseconds now) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr || talk->links.empty()) return 0;
    ledger_.refresh(*talk, now);
    bulk_shares_.assign(talk->links.size(), 0);
    policy_.split(talk->candidates, bytes, now, bulk_shares_);
    std::uint64_t got = 0, rest = 0;
    for (std::size_t i = 0; i < talk->links.size(); ++i) {
        (gets_from(talk->links[i], source) ? got : rest) += bulk_shares_[i];
    }
    if (rest < smallest_share && got > 0) return bytes;
    return got < smallest_share ? 0 : got;
}

void RailManager::offer_gets(std::uint32_t peer, base::Nanoseconds now) {
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    for (std::size_t i = 0; i < talk->links.size(); ++i) feed_gets(links_.at(talk->links[i]), now);
}

/// Whichever link has room takes the next piece, so all that get are over at about the same time.
void RailManager::feed_gets(Link& link, base::Nanoseconds now) {
    if (!gets_over(link)) return;
    while (link.gets < bulk_per_link) {
        Frame* frame = upper_.next_get(link.peer, link.rail, link.remote_rail, options_.fragment);
        if (frame == nullptr) return;
        ++link.gets;
        line_up(link, frame, now);
    }
}

void RailManager::end_get(Link& link, Frame& frame, transports::WorkStatus status) {
    --link.gets;
    if (status == transports::WorkStatus::ok) peers_[link.peer].traffic[link.rail].received_bytes += frame.payload;
    upper_.on_got(link.peer, frame, status);
    pool_.give(&frame);
    if (status == transports::WorkStatus::ok && link.state == LinkState::live) feed_gets(link, now_);
}

// --- Planning beforehand ---------------------------------------------------------------------------------------------

void RailManager::plan_bulk(std::uint32_t peer, const BulkTarget& target, std::uint64_t bytes, base::Nanoseconds now,
                            std::vector<RailShare>& shares) {
    shares.clear();
    bulk_candidates_.clear();
    auto* talk = peers_[peer].talk.get();
    if (talk == nullptr) return;
    ledger_.refresh(*talk, now);
    for (std::size_t i = 0; i < talk->links.size(); ++i) {
        const Link& link = links_.at(talk->links[i]);
        const auto* key = target.find(link.remote_rail);
        if (key == nullptr || key->reserve) continue;
        bulk_candidates_.push_back(talk->candidates[i]);
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

bool RailManager::open_regions(std::uint32_t peer, std::span<std::byte> memory, std::vector<OpenRegion>& regions) {
    const auto reaches = [&, talk = peers_[peer].talk.get()](std::uint32_t rail) {
        return talk != nullptr &&
               std::ranges::any_of(talk->links, [&](auto slot) { return links_.at(slot).rail == rail; });
    };
    regions.clear();
    bool linked = false, open = false;
    for (std::uint32_t rail = 0; rail < rails_.size(); ++rail) {
        if (!rails_[rail].up && !rails_[rail].traits().comes_back) continue;
        auto region = add_region(peer, rail, memory, transports::Access::remote_write);
        linked = linked || reaches(rail);
        if (region) {
            regions.push_back({rail, region.value()});
            open = open || reaches(rail);
        } else if (rails_[rail].up) {
            log_.warning("rail {}: {} bytes cannot be registered, so it carries none of this message: {}",
                         rails_[rail].traits().name, memory.size(), region.error().what());
        }
    }
    // Without any link it will come over one that is made again.
    if (open || (!linked && !regions.empty())) return true;
    close_regions(regions);
    return false;
}

void RailManager::close_regions(std::vector<OpenRegion>& regions) noexcept {
    for (const auto& open : regions) rails_[open.rail].rail->drop_region(open.region);
    regions.clear();
}

/// Counts what is made.
base::Result<transports::Region> RailManager::add_region(std::uint32_t peer, std::uint32_t rail,
                                                         std::span<std::byte> memory, transports::Access access) {
    auto region = rails_[rail].rail->add_region(memory, access);
    auto* const traffic = peers_[peer].traffic.get();
    if (region && traffic != nullptr && rails_[rail].traits().pins) {
        ++traffic[rail].registrations;
        traffic[rail].registered_bytes += memory.size();
    }
    return region;
}

std::optional<transports::Region> RailManager::open_local(std::uint32_t peer, std::uint32_t rail,
                                                          std::span<std::byte> memory, transports::Access access) {
    auto& entry = rails_[rail];
    if (!entry.up) return std::nullopt;
    auto region = add_region(peer, rail, memory, access);
    if (region) return region.value();
    if (!std::exchange(entry.copies, true)) {
        log_.warning("rail {}: {} bytes cannot be registered, so they are copied, as others may be from now on: {}",
                     entry.traits().name, memory.size(), region.error().what());
    }
    return std::nullopt;
}

void RailManager::reused_local(std::uint32_t peer, std::uint32_t rail) noexcept {
    ++peers_[peer].traffic[rail].registrations_reused;
}

}  // namespace railmux::rails

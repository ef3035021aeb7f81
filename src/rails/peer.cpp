#include "rails/peer.hpp"

#include <fmt/format.h>

namespace railmux::rails {

std::uint32_t PeerTable::of_rank(std::uint32_t rank) {
    const auto [place, fresh] = by_rank_.try_emplace(rank, size());
    if (fresh) known_.add().rank = rank;
    return place->second;
}

std::uint32_t PeerTable::find(std::uint64_t instance, std::uint32_t rank) const noexcept {
    if (const auto place = by_instance_.find(instance); place != by_instance_.end()) return place->second;
    const auto place = by_rank_.find(rank);  // nobody is entered as no_rank
    return place == by_rank_.end() ? no_peer : place->second;
}

std::uint32_t PeerTable::of_instance(std::uint64_t instance, std::uint32_t rank) {
    if (const auto peer = find(instance, rank); peer != no_peer) return peer;
    if (rank != no_rank) return of_rank(rank);
    known_.add();
    return size() - 1;
}

PeerTable::Standing PeerTable::standing(std::uint32_t peer, std::uint64_t instance) const noexcept {
    const auto newest = known_[peer].instance;
    if (newest == 0 || newest == instance) return Standing::current;
    return by_instance_.contains(instance) ? Standing::predecessor : Standing::successor;
}

void PeerTable::learn(std::uint32_t peer, std::uint64_t instance, std::span<const std::byte> address) {
    auto& known = known_[peer];
    known.instance = instance;
    by_instance_[instance] = peer;
    if (!address.empty()) known.address.assign(address.begin(), address.end());
}

std::string PeerTable::name(std::uint32_t peer) const {
    const auto& known = known_[peer];
    const auto address = ProcessAddress::parse(known.address);
    if (known.rank != no_rank) {
        return address ? fmt::format("rank {} ({})", known.rank, address->host) : fmt::format("rank {}", known.rank);
    }
    return address ? fmt::format("{}:{}", address->host, address->pid) : fmt::format("peer {}", peer);
}

}  // namespace railmux::rails

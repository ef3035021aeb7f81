#include "transports/ofi/peers.hpp"

#include <algorithm>

namespace railmux::transports::ofi {

ProcessName Peers::process_at(const RailAddress& address) const noexcept {
    if (!port_.outlives_rail()) return {};
    return {.number = address.process, .owner = address.owner};
}

Peer* Peers::find(const RailAddress& address, std::string& trouble) {
    std::string key(reinterpret_cast<const char*>(address.endpoint.data()), address.endpoint.size());
    if (const auto known = peers_.find(key); known != peers_.end()) {
        known->second.last_used = ++uses_;
        known->second.process = process_at(address);  // a later one with the number has the address, too
        return &known->second;
    }
    forget_idle();
    if (peers_.size() >= port_.max_peers()) {
        trouble = "the provider holds no more endpoints";
        return nullptr;
    }
    Peer peer;
    const int inserted = fi_av_insert(port_.peers.get(), key.data(), 1, &peer.at, 0, nullptr);
    if (inserted != 1) {
        trouble = inserted < 0 ? in_words(inserted) : "the provider does not take the address";
        return nullptr;
    }
    peer.process = process_at(address);
    peer.label = address_text(port_.peers.get(), key.data());
    peer.last_used = ++uses_;
    return &peers_.emplace(std::move(key), peer).first->second;
}

/// Makes room for one more.
void Peers::forget_idle() {
    const auto is_idle = [](const auto& entry) { return entry.second.idle(); };
    const auto too_many = [&] {
        const auto idle = static_cast<std::size_t>(std::ranges::count_if(peers_, is_idle));
        return idle >= most_idle || (idle > 0 && peers_.size() >= port_.max_peers());
    };
    while (too_many()) {
        auto oldest = peers_.end();
        for (auto at = peers_.begin(); at != peers_.end(); ++at) {
            if (!at->second.idle()) continue;
            if (oldest == peers_.end() || at->second.last_used < oldest->second.last_used) oldest = at;
        }
        fi_av_remove(port_.peers.get(), &oldest->second.at, 1, 0);
        peers_.erase(oldest);
    }
}

}  // namespace railmux::transports::ofi

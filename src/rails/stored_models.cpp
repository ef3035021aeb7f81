#include "rails/stored_models.hpp"

#include "rails/process_address.hpp"

namespace railmux::rails {

StoredModels::StoredModels(std::optional<model::StoreOptions> options, const RailSet& rails, const PeerTable& peers,
                           base::Logger& log)
    : rails_(rails), peers_(peers) {
    if (options) store_.emplace(std::move(*options), log);
}

/// Not usable where the peer's address is not known here, as with one that came to us.
model::StoreKey StoredModels::key_of(const Link& link) const {
    const auto address = ProcessAddress::parse(peers_[link.peer].address);
    if (!address) return {};
    for (const auto& rail : address->rails) {
        if (rail.rail == link.remote_rail) return {rails_[link.rail].identity, rail.identity};
    }
    return {};
}

std::optional<LogGP> StoredModels::find(const Link& link) {
    if (!store_) return std::nullopt;
    const auto key = key_of(link);
    return key.usable() ? store_->find(key) : std::nullopt;
}

void StoredModels::keep(const Link& link, const LogGP& model) {
    if (!store_) return;
    if (const auto key = key_of(link); key.usable()) store_->keep(key, model);
}

void StoredModels::confirm(const Link& link) {
    if (!store_) return;
    if (const auto key = key_of(link); key.usable()) store_->confirm(key);
}

}  // namespace railmux::rails

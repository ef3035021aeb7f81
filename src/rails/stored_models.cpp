#include "rails/stored_models.hpp"

#include "base/host.hpp"
#include "rails/process_address.hpp"

namespace railmux::rails {

StoredModels::StoredModels(std::optional<model::StoreOptions> options, const RailSet& rails, const PeerTable& peers,
                           base::Logger& log)
    : rails_(rails), peers_(peers) {
    if (options) store_.emplace(std::move(*options), log);
}

model::StoreKey StoredModels::key_of(const Link& link) const {
    const auto address = ProcessAddress::parse(peers_[link.peer].address);
    if (!address) return {};
    for (const auto& rail : address->rails) {
        if (rail.rail == link.remote_rail) return {rails_[link.rail].identity, rail.identity};
    }
    return {};
}

std::string StoredModels::name_of(const Link& link) const {
    const auto address = ProcessAddress::parse(peers_[link.peer].address);
    return model::StoreEntry::link_from(base::host_name(), rails_[link.rail].traits().name,
                                        address ? address->host : peers_.name(link.peer));
}

std::optional<LogGP> StoredModels::find(const Link& link) {
    if (!store_) return std::nullopt;
    const auto key = key_of(link);
    return key.usable() ? store_->find(key) : std::nullopt;
}

void StoredModels::keep(const Link& link, const LogGP& model) {
    if (!store_) return;
    if (const auto key = key_of(link); key.usable()) store_->keep(key, name_of(link), model);
}

void StoredModels::confirm(const Link& link) {
    if (!store_) return;
    if (const auto key = key_of(link); key.usable()) store_->confirm(key);
}

void StoredModels::keep_shared(const Link& link, const LogGP& model) {
    if (store_) keep_free(key_of(link), link, model);
}

void StoredModels::keep_told(const Link& link, std::uint64_t identity, const LogGP& model) {
    if (store_) keep_free({rails_[link.rail].identity, identity}, link, model);
}

void StoredModels::keep_free(const model::StoreKey& key, const Link& link, const LogGP& model) {
    if (!key.usable() || free_left_ == 0) return;
    --free_left_;
    if (store_->find(key) == model) {
        store_->confirm(key);
    } else {
        store_->keep(key, name_of(link), model);
    }
}

}  // namespace railmux::rails

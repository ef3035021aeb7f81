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

/// By hosts: ranks, and processes, are others in the next job. Who came to us does not say where from; but a rail that is one
/// of ours is of this machine, and a run that went there itself has said how the same pair of rails is called.
std::string StoredModels::name_of(const Link& link, const model::StoreKey& key) {
    const auto to = [&](std::string_view host) {
        return model::StoreEntry::link_from(base::host_name(), rails_[link.rail].traits().name, host);
    };
    if (const auto address = ProcessAddress::parse(peers_[link.peer].address)) return to(address->host);
    for (std::size_t rail = 0; rail < rails_.size(); ++rail) {
        if (rails_[rail].identity == key.remote) return to(base::host_name());
    }
    return store_->link_of(key).value_or(to("an unnamed peer"));
}

std::optional<LogGP> StoredModels::find(const Link& link) {
    if (!store_) return std::nullopt;
    const auto key = key_of(link);
    return key.usable() ? store_->find(key) : std::nullopt;
}

void StoredModels::keep(const Link& link, const LogGP& model) {
    if (!store_) return;
    if (const auto key = key_of(link); key.usable()) store_->keep(key, name_of(link, key), model);
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
        store_->keep(key, name_of(link, key), model);
    }
}

}  // namespace railmux::rails

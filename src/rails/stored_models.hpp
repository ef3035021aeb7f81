// StoredModels: the store, asked about links. Knows by which rails of which machines an entry is filed.
//
// Threads: one engine at a time.
// Lifetime: owned by the assessor; refers to rails and peers.
#pragma once

#include <optional>

#include "model/store.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"

namespace railmux::rails {

class StoredModels {
public:
    /// Without options nothing is found, and nothing kept.
    StoredModels(std::optional<model::StoreOptions> options, const RailSet& rails, const PeerTable& peers,
                 base::Logger& log);

    [[nodiscard]] std::optional<LogGP> find(const Link& link);
    void keep(const Link& link, const LogGP& model);
    /// What find gave still holds.
    void confirm(const Link& link);

private:
    [[nodiscard]] model::StoreKey key_of(const Link& link) const;

    const RailSet& rails_;
    const PeerTable& peers_;
    std::optional<model::Store> store_;
};

}  // namespace railmux::rails

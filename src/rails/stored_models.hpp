// StoredModels: the store, asked about links. Knows by which rails of which machines an entry is filed.
//
// Threads: one engine at a time.
// Lifetime: owned by the assessor; refers to rails and peers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

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

    /// Nothing where the peer's address is not known here, as with one that came to us.
    [[nodiscard]] std::optional<LogGP> find(const Link& link);
    /// What was measured here.
    void keep(const Link& link, const LogGP& model);
    /// What find gave still holds.
    void confirm(const Link& link);

    // What came for free is kept, too, as another run may begin elsewhere; but only 64 of those, as each is a file.
    /// The model of another link of this kind was found to hold for this one.
    void keep_shared(const Link& link, const LogGP& model);
    /// The other side measured it, whose rail has that identity.
    void keep_told(const Link& link, std::uint64_t identity, const LogGP& model);

private:
    [[nodiscard]] model::StoreKey key_of(const Link& link) const;
    [[nodiscard]] std::string name_of(const Link& link, const model::StoreKey& key);
    void keep_free(const model::StoreKey& key, const Link& link, const LogGP& model);

    const RailSet& rails_;
    const PeerTable& peers_;
    std::optional<model::Store> store_;
    std::uint32_t free_left_ = 64;
};

}  // namespace railmux::rails

#include "rails/rail_identity.hpp"

#include <fmt/format.h>

#include <fstream>
#include <span>

#include "base/bytes.hpp"
#include "base/crypto.hpp"
#include "base/host.hpp"

namespace railmux::rails {

std::string machine_identity() {
    std::string id;
    std::ifstream("/etc/machine-id") >>
        id;  // machine-id(5): must not leave the machine but hashed; none in some containers
    return fmt::format("{}\n{}", base::host_name(), id);
}

std::uint64_t rail_identity(std::string_view machine, const transports::RailTraits& traits) {
    constexpr std::string_view purpose = "railmux rail identity";
    const auto speed =
        traits.by_processors ? 0 : traits.speed_bps;  // which it has measured, each time with another result
    const auto text = fmt::format("{}\n{}\n{}\n{}", machine, traits.name, traits.identity, speed);
    const auto digest = base::hmac_sha256(std::as_bytes(std::span(purpose)), {std::as_bytes(std::span(text))});
    const auto hash = base::load<std::uint64_t>(digest.data());
    return hash == 0 ? 1 : hash;
}

}  // namespace railmux::rails

#include "transports/shm/costs.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/fastest.hpp"
#include "base/host.hpp"
#include "transports/shm/other_process.hpp"

namespace railmux::transports::shm {

namespace {

constexpr std::size_t large = 64 * 1024;
constexpr std::size_t small = 64;
constexpr int rounds = 8;

}  // namespace

Costs measure_costs() {
    std::vector<std::byte> from(large, std::byte{1});
    std::vector<std::byte> to(large);
    const OtherProcess self(static_cast<pid_t>(base::process_id()));
    const auto address = reinterpret_cast<std::uintptr_t>(from.data());
    bool good = true;
    const auto fetch = [&](std::size_t bytes) {
        return base::fastest_ns(rounds, [&] { good = self.read(address, std::span(to).first(bytes)) && good; });
    };
    Costs costs;
    costs.copy_per_byte = base::fastest_ns(rounds, [&] { std::memcpy(to.data(), from.data(), large); }) / large;
    costs.fetch = fetch(small);
    costs.fetch_per_byte = std::max(fetch(large) - costs.fetch, 0.0) / large;
    costs.can_fetch = good;
    return costs;
}

Bulk choose_bulk(std::string_view wanted, const Costs& costs) {
    Bulk bulk;
    bulk.speed_bps = static_cast<std::uint64_t>(8e9 / costs.copy_per_byte);
    if (wanted == "copy" || !costs.can_fetch) return bulk;
    // By way of the ring each byte is copied twice.
    const auto saved_per_byte = 2 * costs.copy_per_byte - costs.fetch_per_byte;
    if (wanted == "auto" && saved_per_byte <= 0) return bulk;
    const auto pays_from = wanted == "auto" ? costs.fetch / saved_per_byte : 0;
    bulk.fetch_from = std::max<std::uint64_t>(static_cast<std::uint64_t>(std::min(pays_from, 1e15)), least_fetch);
    return bulk;
}

}  // namespace railmux::transports::shm

#include "transports/shm/costs.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "base/fastest.hpp"
#include "base/host.hpp"
#include "transports/shm/other_process.hpp"

namespace railmux::transports::shm {

namespace {

constexpr std::size_t large = 64 * 1024;
constexpr std::size_t small = 64;
constexpr int rounds = 8;
// ns, until a link knows better. Each line of the ring goes from core to core twice: to its writer, then with the bytes to its
// reader. Puts of 64 KiB and more came through this ring at 7 to 8 GB/s on cores of one L3, at 28 between threads of a core.
constexpr double usual_crossing_per_byte = 0.125;

}  // namespace

Costs measure_costs() {
    std::vector<std::byte> from(large, std::byte{1});
    std::vector<std::byte> to(large);
    OtherProcess self(static_cast<pid_t>(base::process_id()));
    const auto address = reinterpret_cast<std::uintptr_t>(from.data());
    bool good = true;
    const auto fetch = [&](std::size_t bytes) {
        return base::fastest_ns(rounds, [&] { good = self.read(address, std::span(to).first(bytes)) && good; });
    };
    Costs costs;
    costs.copy_per_byte = base::fastest_ns(rounds, [&] { base::copy(to.data(), from.data(), large); }) / large;
    costs.fetch = fetch(small);
    costs.fetch_per_byte = std::max(fetch(large) - costs.fetch, 0.0) / large;
    costs.can_fetch = good;
    return costs;
}

Bulk choose_bulk(std::string_view wanted, const Costs& costs) {
    Bulk bulk;
    bulk.speed_bps = static_cast<std::uint64_t>(8e9 / costs.copy_per_byte);
    if (wanted == "copy" || !costs.can_fetch) return bulk;
    if (wanted == "fetch") {
        bulk.fetch_from = least_fetch;
        return bulk;
    }
    // By way of the ring each byte is copied twice, and crosses.
    bulk.fetch_from =
        fetch_pays_from(costs.fetch, costs.fetch_per_byte, std::max(2 * costs.copy_per_byte, usual_crossing_per_byte));
    bulk.judge = costs;
    return bulk;
}

std::uint64_t fetch_pays_from(double call, double fetch_per_byte, double ring_per_byte) noexcept {
    const auto saved_per_byte = ring_per_byte - fetch_per_byte;
    if (saved_per_byte <= 0) return never_fetch;
    return std::max(static_cast<std::uint64_t>(std::min(call / saved_per_byte, 1e15)), least_fetch);
}

}  // namespace railmux::transports::shm

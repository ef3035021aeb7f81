#include "transports/verbs/costs.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/copying.hpp"
#include "base/fastest.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::verbs {

namespace {

constexpr std::size_t small = 4096;
constexpr std::size_t large = 256 * 1024;
constexpr int rounds = 4;

}  // namespace

Costs measure_costs(ibv_pd* domain) {
    std::vector<std::byte> memory(large, std::byte{1});
    Costs costs{.can_register = true};
    const auto registering = [&](std::size_t bytes) {
        return base::fastest_ns(rounds, [&] {
            const auto region = register_memory(domain, memory.data(), bytes, 0);
            costs.can_register = costs.can_register && region != nullptr;
        });
    };
    costs.copying_per_byte = base::measure_copying();
    const auto least = registering(small);
    costs.registering_per_byte = std::max(registering(large) - least, 0.0) / (large - small);
    costs.registering = std::max(least - costs.registering_per_byte * small, 0.0);
    return costs;
}

std::uint64_t choose_register_from(std::string_view wanted, const Costs& costs) noexcept {
    if (wanted == "copy" || !costs.can_register) return never_register;
    if (wanted == "register") return 1;
    const auto saved_per_byte = costs.copying_per_byte - costs.registering_per_byte;
    if (saved_per_byte <= 0) return never_register;
    return std::max<std::uint64_t>(static_cast<std::uint64_t>(std::min(costs.registering / saved_per_byte, 1e15)), 1);
}

}  // namespace railmux::transports::verbs

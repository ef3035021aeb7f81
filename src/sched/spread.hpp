// Spread: how heavy frames that leave in bursts of their own are spread over the rails of a peer.
#pragma once

#include <cstdint>
#include <string_view>

namespace railmux::sched {

enum class Spread : std::uint8_t {
    predicted,  // each goes where it is predicted to arrive first
    by_rate,    // over all rails in turn, as much as each carries by its G
    in_turn,    // over all rails in turn, as much over each
    single,     // over the rail that would be fastest, were all idle
};
inline constexpr std::uint32_t spreads = 4;

/// In words.
[[nodiscard]] constexpr std::string_view to_string(Spread spread) noexcept {
    switch (spread) {
        case Spread::by_rate: return "over all rails in turn, by their rates";
        case Spread::in_turn: return "over all rails in turn, as much over each";
        case Spread::single: return "over one rail";
        default: return "as predicted";
    }
}

}  // namespace railmux::sched

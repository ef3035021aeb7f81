// What it costs to register memory with a device, and to copy instead, and what the verbs rail makes of that.
//
// Threads: any.
// Lifetime: values.
#pragma once

#include <cstdint>
#include <string_view>

#include "transports/verbs/fabric.hpp"

namespace railmux::transports::verbs {

struct Costs {
    double copying_per_byte = 0;      // ns
    double registering = 0;           // ns, until it is withdrawn again
    double registering_per_byte = 0;  // ns: its pages are looked up and held
    bool can_register = false;
};

/// Takes about 1 ms. What is copied and registered is in the caches, as what an application has just made is.
[[nodiscard]] Costs measure_costs(ibv_pd* domain);

/// Bytes in one piece from which on they are registered for a put, not copied (RailTraits::register_from). `wanted` is the
/// parameter verbs.bulk: auto, register or copy.
[[nodiscard]] std::uint64_t choose_register_from(std::string_view wanted, const Costs& costs) noexcept;

}  // namespace railmux::transports::verbs

// What carrying bytes costs in this process: by which the shm rail decides how it carries puts.
//
// Threads: any.
// Lifetime: none.
#pragma once

#include <string_view>

#include "transports/shm/rail.hpp"

namespace railmux::transports::shm {

/// By the parameter shm.bulk: measured for `auto`, which takes a fraction of a millisecond.
[[nodiscard]] Bulk choose_bulk(std::string_view wanted);

}  // namespace railmux::transports::shm

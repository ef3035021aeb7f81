#include "transports/shm/costs.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include "base/clock.hpp"
#include "base/host.hpp"

namespace railmux::transports::shm {

Bulk choose_bulk(std::string_view wanted) {
    Bulk bulk;
    bulk.pull_from = wanted == "copy" ? never_pull : 8192;
    bulk.speed_bps = 80'000'000'000;
    return bulk;
}

}  // namespace railmux::transports::shm

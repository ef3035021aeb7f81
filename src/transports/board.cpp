#include "transports/board.hpp"

namespace railmux::transports {

void Board::hide(const RegionKey& key) noexcept {
    if (!shows(key)) return;
    regions[key.id].secret.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace railmux::transports

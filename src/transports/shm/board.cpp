#include "transports/shm/board.hpp"

namespace railmux::transports::shm {

void Board::hide(const RegionKey& key) noexcept {
    if (key.id >= size || regions[key.id].secret.load(std::memory_order_relaxed) != key.secret) return;
    regions[key.id].secret.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace railmux::transports::shm

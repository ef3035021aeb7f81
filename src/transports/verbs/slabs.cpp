#include "transports/verbs/slabs.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "base/numa.hpp"

namespace railmux::transports::verbs {

void Slabs::Unmap::operator()(std::byte* memory) const noexcept { ::munmap(memory, bytes); }

int Slabs::grow(ibv_pd* domain, std::size_t count) {
    // Mapped, not allocated: whole pages that hold nothing else, as registration and fork() want them.
    const auto bytes = count * slab_bytes_;
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return errno;
    base::prefer_node({static_cast<std::byte*>(memory), bytes}, node_);  // registration takes the pages
    Chunk chunk{{static_cast<std::byte*>(memory), Unmap{bytes}}, nullptr};
    chunk.region = register_memory(domain, memory, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!chunk.region) return errno;
    free_.reserve(slabs_.size() + count);
    for (std::size_t i = 0; i < count; ++i) {
        free_.push_back(static_cast<std::uint32_t>(slabs_.size()));
        slabs_.push_back({chunk.memory.get() + i * slab_bytes_, chunk.region->lkey});
    }
    chunks_.push_back(std::move(chunk));
    return 0;
}

std::uint32_t Slabs::take() noexcept {
    const auto slab = free_.back();
    free_.pop_back();
    return slab;
}

}  // namespace railmux::transports::verbs

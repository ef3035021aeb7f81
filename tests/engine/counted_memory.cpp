#include "engine/counted_memory.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace railmux::test {

namespace {
std::atomic<std::uint64_t> count{0};
std::atomic<std::int64_t> held{0};
thread_local bool inside = false;
}  // namespace

std::uint64_t allocations() noexcept { return count.load(); }
std::int64_t scoped_bytes() noexcept { return held.load(); }

MemoryScope::MemoryScope() noexcept { inside = true; }
MemoryScope::~MemoryScope() { inside = false; }

}  // namespace railmux::test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(std::size_t bytes) {
    using namespace railmux::test;
    void* memory = std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) throw std::bad_alloc();
    count.fetch_add(1, std::memory_order_relaxed);
    if (inside) held.fetch_add(static_cast<std::int64_t>(::malloc_usable_size(memory)), std::memory_order_relaxed);
    return memory;
}

void operator delete(void* memory) noexcept {
    using namespace railmux::test;
    if (inside) held.fetch_sub(static_cast<std::int64_t>(::malloc_usable_size(memory)), std::memory_order_relaxed);
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

#endif

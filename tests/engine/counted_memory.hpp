// What the test program takes from the heap, the library's share included.
//
// Threads: counts from anywhere; a MemoryScope is for one thread at a time.
// Lifetime: the program.
#pragma once

#include <cstdint>

namespace railmux::test {

// Sanitizers bring their own operator new and keep freed memory aside: there is nothing to count then.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool counts_memory = false;
#else
inline constexpr bool counts_memory = true;
#endif

/// Allocations so far.
[[nodiscard]] std::uint64_t allocations() noexcept;

/// Bytes allocated and not freed again inside of MemoryScopes, as the heap rounds them up: what one of several contexts in
/// a process keeps, if all calls to it are made in scopes and no others.
[[nodiscard]] std::int64_t scoped_bytes() noexcept;

class MemoryScope {
public:
    MemoryScope() noexcept;
    ~MemoryScope();
    MemoryScope(const MemoryScope&) = delete;
    MemoryScope& operator=(const MemoryScope&) = delete;
};

}  // namespace railmux::test

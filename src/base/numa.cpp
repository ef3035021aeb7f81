#include "base/numa.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace railmux::base {

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t samples = 64;
constexpr int most_nodes = 1024;  // of any kernel

}  // namespace

// By system calls of their own, as libnuma is not on every host and has no more to say.

int node_of(std::span<const std::byte> memory) noexcept {
    if (memory.empty()) return -1;
    const auto pages = (memory.size() + page_bytes - 1) / page_bytes;
    const auto count = std::min(pages, samples);
    std::array<const void*, samples> places{};
    std::array<int, samples> nodes{};
    for (std::size_t i = 0; i < count; ++i) places[i] = memory.data() + pages * i / count * page_bytes;
    nodes.fill(-1);
    // Without nodes to move to it says where pages are; errors for those that are not there.
    if (::syscall(SYS_move_pages, 0, count, places.data(), nullptr, nodes.data(), 0) != 0) return -1;
    int best = -1;
    std::ptrdiff_t most = 0;
    for (const int node : std::span(nodes).first(count)) {
        if (node < 0 || node == best) continue;
        const auto pages_there = std::ranges::count(std::span(nodes).first(count), node);
        if (pages_there > most) {
            best = node;
            most = pages_there;
        }
    }
    return best;
}

void prefer_node(std::span<std::byte> memory, int node) noexcept {
    if (node < 0 || node >= most_nodes || memory.empty()) return;
    constexpr int bits = 8 * sizeof(unsigned long);
    std::array<unsigned long, most_nodes / bits> nodes{};
    nodes[static_cast<std::size_t>(node / bits)] = 1UL << (node % bits);
    // The kernel takes one bit less than it is told.
    static_cast<void>(
        ::syscall(SYS_mbind, memory.data(), memory.size(), MPOL_PREFERRED, nodes.data(), most_nodes + 1UL, 0U));
}

}  // namespace railmux::base

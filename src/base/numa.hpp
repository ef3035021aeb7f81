// Where memory lies on hosts whose memory is in several nodes (NUMA), each near some processors and devices.
//
// Threads: any.
// Lifetime: none.
#pragma once

#include <cstddef>
#include <span>

namespace railmux::base {

/// The node where most of it lies, by a sample of its pages; -1 where none is there yet, or the kernel does not tell.
/// A system call; touches nothing.
[[nodiscard]] int node_of(std::span<const std::byte> memory) noexcept;

/// Takes the pages that are not there yet from that node, as long as it has some. Nothing for -1, or where the kernel does
/// not allow it: where memory lies is a matter of speed. Memory that begins with a page.
void prefer_node(std::span<std::byte> memory, int node) noexcept;

}  // namespace railmux::base

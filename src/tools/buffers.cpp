#include "tools/buffers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <railmux/error.hpp>

namespace railmux::tools {
namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t window_bytes = std::size_t{512} << 20;

constexpr std::size_t round_up(std::size_t size, std::size_t unit) noexcept { return (size + unit - 1) / unit * unit; }

}  // namespace

std::uint64_t Buffers::stride_of(std::uint64_t bytes) noexcept {
    return bytes < page ? round_up(std::max<std::size_t>(bytes, 1), cache_line) : round_up(bytes, page);
}

void Buffers::resize(std::uint64_t bytes, std::uint64_t count) {
    stride_ = stride_of(bytes);
    bytes_ = bytes;
    count_ = count;
    const auto needed = round_up(stride_ * count, page);
    if (needed <= capacity_) return;
    memory_.reset();  // before the new memory is asked for: large ones need not fit twice
    capacity_ = 0;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(page, needed)));
    if (!memory_) {
        throw Error(ErrorCode::out_of_memory, fmt::format("no memory for {} messages of {} bytes", count, bytes),
                    "use smaller sizes or a smaller --window (pingpong: --burst)");
    }
    capacity_ = needed;
}

std::uint64_t affordable_window(std::uint64_t bytes, std::uint64_t window) noexcept {
    return std::clamp<std::uint64_t>(window_bytes / Buffers::stride_of(bytes), 1, window);
}

}  // namespace railmux::tools

// Buffers: page-aligned room for the messages under way, used again by every series.
//
// Threads: one thread at a time.
// Lifetime: owns the memory; the views end with the next resize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

namespace railmux::tools {

class Buffers {
public:
    static constexpr std::size_t page = 4096;

    /// Room for `count` messages. Throws Error(out_of_memory).
    void resize(std::uint64_t bytes, std::uint64_t count);

    [[nodiscard]] std::span<std::byte> operator[](std::uint64_t index) const noexcept {
        return {memory_.get() + index * stride_, bytes_};
    }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    /// All of it, for filling.
    [[nodiscard]] std::span<std::byte> all() const noexcept { return {memory_.get(), stride_ * count_}; }

    /// Bytes from one message to the next: messages never share a cache line, and large ones begin on a page.
    [[nodiscard]] static std::uint64_t stride_of(std::uint64_t bytes) noexcept;

private:
    struct Free {
        void operator()(std::byte* memory) const noexcept { std::free(memory); }
    };
    std::unique_ptr<std::byte, Free> memory_;
    std::size_t capacity_ = 0;
    std::size_t stride_ = 0;
    std::size_t bytes_ = 0;
    std::uint64_t count_ = 0;
};

/// The widest window up to `window` whose buffers, a side and direction, take at most 512 MiB.
[[nodiscard]] std::uint64_t affordable_window(std::uint64_t bytes, std::uint64_t window) noexcept;

}  // namespace railmux::tools

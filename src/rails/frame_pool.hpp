// FramePool: frames of a few sizes, reused so that steady traffic allocates nothing.
//
// Threads: one engine at a time.
// Lifetime: owns all its frames; outlives every session that uses it.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/in_line.hpp"
#include "rails/frame.hpp"

namespace railmux::rails {

class FramePool {
public:
    FramePool() = default;
    FramePool(const FramePool&) = delete;
    FramePool& operator=(const FramePool&) = delete;

    /// A frame with its state cleared and room for `bytes` behind it, and a seal. `bytes` is at most `largest`.
    [[nodiscard]] RAILMUX_IN_LINE Frame* take(std::size_t bytes) {
        const auto index = class_of(bytes);
        if (free_[index] == nullptr) grow(index);
        Frame* frame = free_[index];
        free_[index] = frame->next;
        static_cast<FrameState&>(*frame) = {};
        frame->capacity = classes[index];
        return frame;
    }
    void give(Frame* frame) noexcept {
        const auto index = class_of(frame->capacity);
        frame->next = free_[index];
        free_[index] = frame;
    }
    /// Frames taken and not given back; less than none when one was given back twice. For tests: it counts them.
    [[nodiscard]] std::ptrdiff_t in_use() const noexcept;

    static constexpr std::uint32_t largest = largest_inlined;
    static constexpr std::uint32_t largest_on_rail = 64 * 1024;

private:
    // Room for a control frame or tiny message, a small message, a page-sized one, all that fits a frame on a rail, and what is
    // kept of a message that went unasked. Each class is at most about eight times the last: that much of a frame's room is
    // unused, in a pool bounded by the eager window. With its seal the smallest is two lines.
    static constexpr std::array<std::uint32_t, 5> classes = {120, 1024, 8 * 1024 + 64, largest_on_rail, largest};
    static constexpr std::size_t slab_bytes = 64 * 1024;
    struct alignas(Frame) Line {
        std::array<std::byte, alignof(Frame)> bytes;
    };

    [[nodiscard]] static std::size_t class_of(std::size_t bytes) noexcept {
        assert(bytes <= largest);
        std::size_t index = 0;
        while (classes[index] < bytes) ++index;
        return index;
    }
    void grow(std::size_t size_class);

    std::array<Frame*, classes.size()> free_{};
    std::array<std::ptrdiff_t, classes.size()> made_{};
    std::vector<std::unique_ptr<Line[]>> slabs_;
};

}  // namespace railmux::rails

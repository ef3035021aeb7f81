#include "rails/frame_pool.hpp"

#include <algorithm>
#include <new>

#include "rails/seal.hpp"

namespace railmux::rails {

std::ptrdiff_t FramePool::in_use() const noexcept {
    std::ptrdiff_t all = 0;
    for (std::size_t index = 0; index < classes.size(); ++index) {
        auto used = made_[index];
        // One that was given back twice may have made a circle of the list.
        for (const Frame* frame = free_[index]; frame != nullptr && used >= 0; frame = frame->next) --used;
        if (used < 0) return used;
        all += used;
    }
    return all;
}

void FramePool::grow(std::size_t size_class) {
    const auto lines = (sizeof(Frame) + classes[size_class] + Seal::size + sizeof(Line) - 1) / sizeof(Line);
    const auto count = std::max<std::size_t>(slab_bytes / (lines * sizeof(Line)), 1);
    auto slab = std::make_unique_for_overwrite<Line[]>(lines * count);
    for (std::size_t i = 0; i < count; ++i) {
        auto* frame = new (slab.get() + i * lines) Frame;
        frame->capacity = classes[size_class];
        give(frame);
    }
    made_[size_class] += static_cast<std::ptrdiff_t>(count);
    slabs_.push_back(std::move(slab));
}

}  // namespace railmux::rails

// SlotTable: objects at stable addresses, named by index and generation; used again, never given back.
//
// Threads: one engine at a time.
// Lifetime: owns its objects; they are constructed once and reset by their users, so that what they have allocated
// (vectors) is used again too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/stable_vector.hpp"
#include "messaging/wire.hpp"

namespace railmux::messaging {

/// T has members `std::uint32_t index`, `std::uint32_t generation`, `bool used`.
template <typename T>
class SlotTable {
public:
    [[nodiscard]] T& take() {
        if (free_count_ == 0) [[unlikely]]
            grow();
        T& slot = *free_[--free_count_];
        slot.used = true;
        return slot;
    }
    void give(T& slot) noexcept {
        slot.used = false;
        ++slot.generation;  // handles still out there name nothing any more
        free_[free_count_++] = &slot;
    }
    [[nodiscard]] T& at(std::uint32_t index) noexcept { return slots_[index]; }

    /// The object a peer's handle names, or nullptr: handles from the wire are never trusted.
    [[nodiscard]] T* find(Handle handle) noexcept {
        if (handle.index >= slots_.size()) return nullptr;
        T& slot = at(handle.index);
        return slot.used && slot.generation == handle.generation ? &slot : nullptr;
    }

    template <typename Visit>
    void for_each(Visit visit) {
        slots_.for_each([&](T& slot) {
            if (slot.used) visit(slot);
        });
    }

private:
    [[gnu::noinline]] void grow() {
        const auto index = static_cast<std::uint32_t>(slots_.size());
        T& slot = slots_.add();
        slot.index = index;
        if (free_.size() < slots_.size()) free_.resize(2 * slots_.size());  // so that give never allocates
        free_[free_count_++] = &slot;
    }

    base::StableVector<T> slots_;
    std::vector<T*> free_;        // room for all of them
    std::size_t free_count_ = 0;  // the first so many are
};

template <typename T>
[[nodiscard]] Handle handle_of(const T& slot) noexcept {
    return {slot.index, slot.generation};
}

}  // namespace railmux::messaging

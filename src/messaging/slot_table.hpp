// SlotTable: objects at stable addresses, named by index and generation; used again, never given back.
//
// Threads: one engine at a time.
// Lifetime: owns its objects; they are constructed once and reset by their users, so that what they have allocated
// (vectors) is used again too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "messaging/wire.hpp"

namespace railmux::messaging {

/// T has members `std::uint32_t index`, `std::uint32_t generation`, `bool used`.
template <typename T>
class SlotTable {
public:
    [[nodiscard]] T& take() {
        if (free_.empty()) grow();
        T& slot = at(free_.back());
        free_.pop_back();
        slot.used = true;
        return slot;
    }
    void give(T& slot) noexcept {
        slot.used = false;
        ++slot.generation;  // handles still out there name nothing any more
        free_.push_back(slot.index);
    }
    [[nodiscard]] T& at(std::uint32_t index) noexcept { return chunks_[index / chunk][index % chunk]; }

    /// The object a peer's handle names, or nullptr: handles from the wire are never trusted.
    [[nodiscard]] T* find(Handle handle) noexcept {
        if (handle.index >= chunks_.size() * chunk) return nullptr;
        T& slot = at(handle.index);
        return slot.used && slot.generation == handle.generation ? &slot : nullptr;
    }

    template <typename Visit>
    void for_each(Visit visit) {
        for (std::uint32_t i = 0; i < chunks_.size() * chunk; ++i) {
            if (at(i).used) visit(at(i));
        }
    }

private:
    static constexpr std::uint32_t chunk = 64;

    void grow() {
        const auto first = static_cast<std::uint32_t>(chunks_.size()) * chunk;
        chunks_.push_back(std::make_unique<T[]>(chunk));
        free_.reserve(chunks_.size() * chunk);  // so that give never allocates
        for (std::uint32_t i = chunk; i-- > 0;) {
            chunks_.back()[i].index = first + i;
            free_.push_back(first + i);
        }
    }

    std::vector<std::unique_ptr<T[]>> chunks_;
    std::vector<std::uint32_t> free_;
};

template <typename T>
[[nodiscard]] Handle handle_of(const T& slot) noexcept {
    return {slot.index, slot.generation};
}

}  // namespace railmux::messaging

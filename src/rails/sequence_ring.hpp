// SequenceRing: values by sequence number within a moving window; grows with the window in use.
//
// Threads: one engine at a time.
// Lifetime: owns its slots.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/in_line.hpp"

namespace railmux::rails {

/// Numbers wrap around at 2^32. A fresh T{} means "nothing here". Starts small (an idle peer is cheap) and doubles as far
/// as the window asks for; it never shrinks, so steady traffic allocates nothing.
template <typename T>
class SequenceRing {
public:
    explicit SequenceRing(std::uint32_t base = 0) : slots_(initial), base_(base) {}

    /// The lowest number in the window.
    [[nodiscard]] std::uint32_t base() const noexcept { return base_; }

    /// The slot for `number`, base() <= number in wrapping arithmetic; grows to reach it.
    [[nodiscard]] RAILMUX_IN_LINE T& at(std::uint32_t number) {
        if (const auto distance = number - base_; distance > mask_) [[unlikely]]
            grow(distance);
        return slots_[number & mask_];
    }
    /// As at(), for a number known to be within the slots; T{} beyond them.
    [[nodiscard]] T get(std::uint32_t number) const noexcept {
        return number - base_ <= mask_ ? slots_[number & mask_] : T{};
    }
    /// pop(), of which it returns what was there.
    T take_lowest() noexcept {
        auto& slot = slots_[base_++ & mask_];
        return std::exchange(slot, T{});
    }
    /// Moves the window on by one, whose lowest slot is empty.
    void skip() noexcept {
        assert(slots_[base_ & mask_] == T{});
        ++base_;
    }
    /// Empties the lowest slot and moves the window on by one.
    void pop() noexcept {
        slots_[base_ & mask_] = T{};
        ++base_;
    }

private:
    static constexpr std::size_t initial = 32;

    [[gnu::noinline]] void grow(std::uint32_t distance) {
        std::vector<T> larger(std::bit_ceil(std::size_t{distance} + 1));
        const auto new_mask = static_cast<std::uint32_t>(larger.size()) - 1;
        for (std::uint32_t i = 0; i < slots_.size(); ++i) {
            const auto number = base_ + i;
            larger[number & new_mask] = std::move(slots_[number & mask_]);
        }
        slots_ = std::move(larger);
        mask_ = new_mask;
    }

    std::vector<T> slots_;
    std::uint32_t base_;
    std::uint32_t mask_ = initial - 1;  // one less than there are slots
};

}  // namespace railmux::rails

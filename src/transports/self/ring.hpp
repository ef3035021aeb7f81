// Ring: a queue whose slots are used again, so that a queue that has seen its largest size allocates no more, and what
// the slots own (a vector's memory) serves the next user.
//
// Threads: one thread.
// Lifetime: references are good until the next push.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace railmux::transports::self {

template <typename T>
class Ring {
public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
    [[nodiscard]] T& operator[](std::size_t i) noexcept { return slots_[(head_ + i) & (slots_.size() - 1)]; }

    /// The new last slot, as its former user left it.
    [[nodiscard]] T& push() {
        if (size_ == slots_.size()) grow();
        ++size_;
        return (*this)[size_ - 1];
    }
    void pop() noexcept {
        head_ = (head_ + 1) & (slots_.size() - 1);
        --size_;
    }

private:
    void grow() {
        std::vector<T> larger(slots_.empty() ? 16 : 2 * slots_.size());  // a power of two
        for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
        slots_ = std::move(larger);
        head_ = 0;
    }
    std::vector<T> slots_;
    std::size_t head_ = 0;
    std::size_t size_ = 0;
};

}  // namespace railmux::transports::self

// StableVector: a sequence that grows at its end, whose elements stay where they are. As std::deque, but an element is found
// with two loads, which counts where a message looks up half a dozen.
//
// Threads: one at a time.
// Lifetime: an element lives as long as the sequence.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace railmux::base {

/// T is default-constructible.
template <typename T>
class StableVector {
public:
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    [[nodiscard]] T& operator[](std::size_t i) noexcept { return chunks_[i / chunk][i % chunk]; }
    [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return chunks_[i / chunk][i % chunk]; }

    /// One more, as its default constructor makes it.
    T& add() {
        if (size_ == chunks_.size() * chunk) chunks_.push_back(std::make_unique<T[]>(chunk));
        return (*this)[size_++];
    }

    template <typename Visit>
    void for_each(Visit visit) {
        for (std::size_t i = 0; i < size_; ++i) visit((*this)[i]);
    }

private:
    static constexpr std::size_t chunk = 16;

    std::vector<std::unique_ptr<T[]>> chunks_;
    std::size_t size_ = 0;
};

}  // namespace railmux::base

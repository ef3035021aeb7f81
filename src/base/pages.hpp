// Pages: memory for what the kernel copies there.
//
// Threads: one thread at a time.
// Lifetime: owns its memory.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

namespace railmux::base {

/// From the beginning of a page on. What comes over a socket lies from the beginning of a page on, too, where its sender had
/// nothing else under way, and the kernel copies by "rep movsb": 16 bytes behind that, where malloc puts what is large, that
/// takes some processors 25 times as long (copy_long in bytes.hpp). What is read behind a beginning that is kept may lie so.
class Pages {
public:
    /// So many bytes at least, of any value.
    explicit Pages(std::size_t bytes) : pages_(std::make_unique_for_overwrite<Page[]>((bytes + page - 1) / page)) {}

    [[nodiscard]] std::byte* get() noexcept { return reinterpret_cast<std::byte*>(pages_.get()); }

private:
    static constexpr std::size_t page = 4096;
    struct alignas(page) Page {
        std::array<std::byte, page> bytes;
    };
    std::unique_ptr<Page[]> pages_;
};

}  // namespace railmux::base

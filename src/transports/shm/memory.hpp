// Shared: content in memory of its own (a memfd), which one process makes and hands to others: the Block of a link
// (SharedBlock), or the Board of a rail.
//
// It has no name anywhere, so nothing is left behind when its processes are killed. It is sealed against changes of its size,
// and all of it is allocated at once: no later touch of it can fail, whatever the other side does.
//
// Threads: values; what is in there has its own rule.
// Lifetime: unmaps the content; the kernel frees it when all have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/file_descriptor.hpp"
#include "base/result.hpp"
#include "transports/shm/block.hpp"
#include "transports/shm/board.hpp"

namespace railmux::transports::shm {

/// Pages of a memfd.
class Mapping {
public:
    Mapping() = default;
    Mapping(Mapping&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(memory_, other.memory_);
        std::swap(size_, other.size_);
        return *this;
    }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();

    struct Made;
    enum class Others : std::uint8_t { write, read };
    /// New and empty; what others may do with it. Error(system), as below.
    [[nodiscard]] static base::Result<Made> make(const char* name, std::size_t size, Others others);
    /// What another process made, to be written, too, or only read. Error when it is not what make() makes.
    [[nodiscard]] static base::Result<Mapping> adopt(const base::FileDescriptor& file, std::size_t size);
    [[nodiscard]] static base::Result<Mapping> adopt_to_read(const base::FileDescriptor& file, std::size_t size);

    [[nodiscard]] void* get() const noexcept { return memory_; }

private:
    [[nodiscard]] static base::Result<Mapping> map(const base::FileDescriptor& file, std::size_t size, int protection);
    [[nodiscard]] static base::Result<Mapping> map_all(const base::FileDescriptor& file, std::size_t size);
    void* memory_ = nullptr;
    std::size_t size_ = 0;
};

struct Mapping::Made {
    Mapping memory;
    base::FileDescriptor file;  // for others
};

class SharedBlock {
public:
    SharedBlock() = default;

    struct Made;
    [[nodiscard]] static base::Result<Made> make();
    [[nodiscard]] static base::Result<SharedBlock> adopt(const base::FileDescriptor& file);

    [[nodiscard]] Block* get() const noexcept { return static_cast<Block*>(memory_.get()); }

private:
    Mapping memory_;
};

struct SharedBlock::Made {
    SharedBlock block;
    base::FileDescriptor file;  // for the other side
};

}  // namespace railmux::transports::shm

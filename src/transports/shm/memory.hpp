// SharedBlock: a Block in memory of its own (a memfd), which one side of a link makes and hands to the other.
//
// It has no name anywhere, so nothing is left behind when its processes are killed. It is sealed against changes of its size,
// and all of it is allocated at once: no later touch of it can fail, whatever the other side does.
//
// Threads: values; what is in the Block has its own rule.
// Lifetime: unmaps the block; the kernel frees it when both sides have.
#pragma once

#include <memory>

#include "base/file_descriptor.hpp"
#include "base/result.hpp"
#include "transports/shm/block.hpp"

namespace railmux::transports::shm {

class SharedBlock {
public:
    SharedBlock() = default;

    struct Made;
    /// New and empty. Error(system).
    [[nodiscard]] static base::Result<Made> make();
    /// What the other side made. Error(system) when it is not what make() makes.
    [[nodiscard]] static base::Result<SharedBlock> adopt(const base::FileDescriptor& file);

    [[nodiscard]] Block* get() const noexcept { return block_.get(); }

private:
    struct Unmap {
        void operator()(Block* block) const noexcept;
    };
    [[nodiscard]] static base::Result<SharedBlock> map(const base::FileDescriptor& file);
    std::unique_ptr<Block, Unmap> block_;
};

struct SharedBlock::Made {
    SharedBlock block;
    base::FileDescriptor file;  // for the other side
};

}  // namespace railmux::transports::shm

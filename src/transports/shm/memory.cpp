#include "transports/shm/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace railmux::transports::shm {

namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error trouble(const std::string& what) {
    return {ErrorCode::system, what + ": " + std::system_category().message(errno)};
}

}  // namespace

void SharedBlock::Unmap::operator()(Block* block) const noexcept { ::munmap(block, sizeof(Block)); }

base::Result<SharedBlock> SharedBlock::map(const base::FileDescriptor& file) {
    if (::fallocate(file.get(), 0, 0, sizeof(Block)) != 0) return trouble("no room for shared memory");
    void* memory = ::mmap(nullptr, sizeof(Block), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return trouble("shared memory cannot be mapped");
    SharedBlock shared;
    shared.block_.reset(static_cast<Block*>(memory));
    return shared;
}

base::Result<SharedBlock::Made> SharedBlock::make() {
    base::FileDescriptor file(::memfd_create("railmux", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.valid()) return trouble("no shared memory (memfd_create)");
    if (::ftruncate(file.get(), sizeof(Block)) != 0) return trouble("no room for shared memory");
    if (::fcntl(file.get(), F_ADD_SEALS, seals) != 0) return trouble("shared memory cannot be sealed");
    auto mapped = map(file);
    if (!mapped) return mapped.error();
    return Made{std::move(mapped.value()), std::move(file)};
}

base::Result<SharedBlock> SharedBlock::adopt(const base::FileDescriptor& file) {
    const int found = ::fcntl(file.get(), F_GET_SEALS);
    struct stat info {};
    if (found < 0 || (found & seals) != seals || ::fstat(file.get(), &info) != 0 || info.st_size != sizeof(Block)) {
        return Error(ErrorCode::system, "what it handed over is not the shared memory of a link");
    }
    return map(file);
}

}  // namespace railmux::transports::shm

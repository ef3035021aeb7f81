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

Error strange() { return {ErrorCode::system, "what it handed over is not the shared memory of a link"}; }

bool is_sealed(const base::FileDescriptor& file, std::size_t size) {
    const int found = ::fcntl(file.get(), F_GET_SEALS);
    struct stat info {};
    return found >= 0 && (found & seals) == seals && ::fstat(file.get(), &info) == 0 &&
           info.st_size == static_cast<off_t>(size);
}

}  // namespace

Mapping::~Mapping() {
    if (memory_ != nullptr) ::munmap(memory_, size_);
}

base::Result<Mapping> Mapping::map(const base::FileDescriptor& file, std::size_t size, int protection) {
    void* memory = ::mmap(nullptr, size, protection, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return trouble("shared memory cannot be mapped");
    Mapping mapping;
    mapping.memory_ = memory;
    mapping.size_ = size;
    return mapping;
}

base::Result<Mapping::Made> Mapping::make(const char* name, std::size_t size, Others others) {
    base::FileDescriptor file(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.valid()) return trouble("no shared memory (memfd_create)");
    if (::ftruncate(file.get(), static_cast<off_t>(size)) != 0) return trouble("no room for shared memory");
    auto mapped = map_all(file, size);
    if (!mapped) return mapped.error();
    // From here on nobody can map it to be written (Linux 5.1).
    if (others == Others::read) static_cast<void>(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    if (::fcntl(file.get(), F_ADD_SEALS, seals) != 0) return trouble("shared memory cannot be sealed");
    return Made{std::move(mapped.value()), std::move(file)};
}

/// With all of it allocated.
base::Result<Mapping> Mapping::map_all(const base::FileDescriptor& file, std::size_t size) {
    if (::fallocate(file.get(), 0, 0, static_cast<off_t>(size)) != 0) return trouble("no room for shared memory");
    return map(file, size, PROT_READ | PROT_WRITE);
}

base::Result<Mapping> Mapping::adopt(const base::FileDescriptor& file, std::size_t size) {
    if (!is_sealed(file, size)) return strange();
    return map_all(file, size);
}

base::Result<Mapping> Mapping::adopt_to_read(const base::FileDescriptor& file, std::size_t size) {
    if (!is_sealed(file, size)) return strange();
    return map(file, size, PROT_READ);
}

base::Result<SharedBlock::Made> SharedBlock::make() {
    auto made = Mapping::make("railmux", sizeof(Block), Mapping::Others::write);
    if (!made) return made.error();
    SharedBlock block;
    block.memory_ = std::move(made.value().memory);
    return Made{std::move(block), std::move(made.value().file)};
}

base::Result<SharedBlock> SharedBlock::adopt(const base::FileDescriptor& file) {
    auto memory = Mapping::adopt(file, sizeof(Block));
    if (!memory) return memory.error();
    SharedBlock block;
    block.memory_ = std::move(memory.value());
    return block;
}

}  // namespace railmux::transports::shm

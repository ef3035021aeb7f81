#include "transports/shm/other_process.hpp"

#include <sys/uio.h>

#include <cerrno>
#include <utility>

#include "base/bytes.hpp"

namespace railmux::transports::shm {

namespace {

/// Until nothing is left; false when nothing more can be copied.
template <typename Copy>
bool all_of(std::byte* data, std::uint64_t address, std::size_t bytes, Copy copy) noexcept {
    while (bytes > 0) {
        const iovec local{data, bytes};
        const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT: of another process
        const auto done = copy(local, remote);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        data += done;
        address += static_cast<std::uint64_t>(done);
        bytes -= static_cast<std::size_t>(done);
    }
    return true;
}

}  // namespace

bool OtherProcess::lately_alive() noexcept {
    const auto now = base::now_ns();
    if (now - seen_ < base::millisecond) return true;
    if (!alive()) return false;
    seen_ = now;
    return true;
}

bool OtherProcess::read(std::uint64_t address, std::span<std::byte> to) noexcept {
    if (!held()) return false;
    const bool whole = all_of(to.data(), address, to.size(), [this](const iovec& local, const iovec& remote) {
        return ::process_vm_readv(process_.number(), &local, 1, &remote, 1, 0);
    });
    return whole && lately_alive();  // so its number was its own all the time
}

bool OtherProcess::write(std::uint64_t address, std::span<const std::byte> from) noexcept {
    if (!held() || !lately_alive()) return false;
    bool begun = false;
    return all_of(const_cast<std::byte*>(from.data()), address, from.size(),  // only read
                  [&](const iovec& local, const iovec& remote) -> ssize_t {
                      if (std::exchange(begun, true) && !alive()) return 0;
                      return ::process_vm_writev(process_.number(), &local, 1, &remote, 1, 0);
                  });
}

bool OtherProcess::readable(std::uint64_t address, std::uint64_t mark) noexcept {
    std::uint64_t found = ~mark;
    return read(address, std::as_writable_bytes(std::span(&found, 1))) && found == mark;
}

}  // namespace railmux::transports::shm

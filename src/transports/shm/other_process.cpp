#include "transports/shm/other_process.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "base/bytes.hpp"

namespace railmux::transports::shm {

OtherProcess::OtherProcess(pid_t number) noexcept
    : number_(number), process_(number > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, number, 0)) : -1) {}

bool OtherProcess::alive() const noexcept {
    if (!process_.valid()) return true;
    pollfd entry{.fd = process_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&entry, 1, 0) != 1;  // a signal that comes just now says nothing
}

bool OtherProcess::read(std::uint64_t address, std::span<std::byte> to) const noexcept {
    if (!process_.valid()) return false;
    std::size_t done = 0;
    while (done < to.size()) {
        const iovec local{to.data() + done, to.size() - done};
        const iovec remote{reinterpret_cast<void*>(address + done), to.size() - done};  // NOLINT: of another process
        const auto got = ::process_vm_readv(number_, &local, 1, &remote, 1, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += static_cast<std::size_t>(got);
    }
    return alive();  // so its number was its own all the time
}

bool OtherProcess::readable(std::uint64_t address, std::uint64_t mark) const noexcept {
    std::uint64_t found = ~mark;
    return read(address, std::as_writable_bytes(std::span(&found, 1))) && found == mark;
}

}  // namespace railmux::transports::shm

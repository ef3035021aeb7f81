// OtherProcess: the process at the other end of a link, as far as the kernel lets us at it: whether it lives, and its memory.
//
// Its memory is read with process_vm_readv, one copy instead of two by way of the ring. That needs the right to trace it: the
// same user, no seccomp filter against it (containers), and with Yama's ptrace_scope 1 a mere relative will not do. Whether it
// is there is tried when a link is set up, on a mark of random bits, which also shows that the process number names the
// process that is meant, whatever process namespaces there are.
//
// Threads: one at a time.
// Lifetime: holds a descriptor of the process, by which its number cannot be mistaken for that of a later one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/file_descriptor.hpp"

namespace railmux::transports::shm {

class OtherProcess {
public:
    OtherProcess() = default;
    /// 0: nothing is known of it.
    explicit OtherProcess(pid_t number) noexcept;

    /// Turns readable when it ends; -1: there is none.
    [[nodiscard]] int descriptor() const noexcept { return process_.get(); }
    /// False when it has ended for sure.
    [[nodiscard]] bool alive() const noexcept;

    /// Copies from that address in its memory. False when not all could be read, or when it may have been another's memory.
    [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> to) const noexcept;
    /// Tries read() on a mark.
    [[nodiscard]] bool readable(std::uint64_t address, std::uint64_t mark) const noexcept;

private:
    pid_t number_ = 0;
    base::FileDescriptor process_;
};

}  // namespace railmux::transports::shm

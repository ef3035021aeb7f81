// OtherProcess: the process at the other end of a link, as far as the kernel lets us at it: whether it lives, and its memory.
//
// Its memory is read with process_vm_readv, and written with process_vm_writev: one copy instead of two by way of the ring.
// That needs the right to trace it: the same user, no seccomp filter against it (containers), and with Yama's ptrace_scope 1
// a mere relative will not do. Whether it is there is tried when a link is set up, on a mark of random bits, which also shows
// that the process number names the process that is meant, whatever process namespaces there are.
//
// Threads: one at a time.
// Lifetime: holds a descriptor of the process (base/process.hpp); where there can be none, its memory is not touched.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.hpp"
#include "base/process.hpp"

namespace railmux::transports::shm {

class OtherProcess {
public:
    OtherProcess() = default;
    /// 0: nothing is known of it.
    explicit OtherProcess(pid_t number) noexcept : process_(number) {}

    /// Turns readable when it ends; -1: there is none.
    [[nodiscard]] int descriptor() const noexcept { return process_.descriptor(); }
    /// False when it has ended for sure.
    [[nodiscard]] bool alive() const noexcept { return process_.alive(); }

    /// Copies from that address in its memory. False when not all could be read, or when it may have been another's memory.
    [[nodiscard]] bool read(std::uint64_t address, std::span<std::byte> to) noexcept;
    /// Copies to that address in its memory. False when not all could be written.
    [[nodiscard]] bool write(std::uint64_t address, std::span<const std::byte> from) noexcept;
    /// Tries read() on a mark.
    [[nodiscard]] bool readable(std::uint64_t address, std::uint64_t mark) noexcept;

private:
    /// Without a descriptor its number may be another's at any time.
    [[nodiscard]] bool held() const noexcept { return descriptor() >= 0; }
    /// alive(), as of a millisecond ago at most. Numbers of processes are given out in turn, and again only after at least some
    /// 300 others, of which each takes 10 us: within that time the number is nobody else's.
    [[nodiscard]] bool lately_alive() noexcept;

    base::Nanoseconds seen_ = 0;  // alive, when it was last looked
    base::Process process_;
};

}  // namespace railmux::transports::shm

#include "base/spare_descriptor.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

namespace railmux::base {

namespace {
FileDescriptor any() noexcept { return FileDescriptor(::open("/", O_PATH | O_CLOEXEC)); }
}  // namespace

SpareDescriptor::SpareDescriptor() noexcept : spare_(any()) {}

bool SpareDescriptor::wanted(int error) noexcept { return error == EMFILE || error == ENFILE; }

bool SpareDescriptor::turn_away(int listener) noexcept {
    if (!spare_.valid()) spare_ = any();
    spare_.reset();
    const bool taken = FileDescriptor(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)).valid();
    spare_ = any();
    return taken;
}

}  // namespace railmux::base

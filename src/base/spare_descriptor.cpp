#include "base/spare_descriptor.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace railmux::base {

namespace {
FileDescriptor any() noexcept { return FileDescriptor(::open("/", O_PATH | O_CLOEXEC)); }
}  // namespace

SpareDescriptor::SpareDescriptor(std::string whose, Logger& log) : whose_(std::move(whose)), log_(log), spare_(any()) {}

bool SpareDescriptor::turn_away(int listener) noexcept {
    if (errno != EMFILE && errno != ENFILE) return false;
    if (!spare_.valid()) spare_ = any();
    spare_.reset();
    // The kernel looks for a descriptor first, and for somebody who waits then: only now is it known whether there is one.
    const bool waited = FileDescriptor(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)).valid();
    spare_ = any();
    if (waited && !std::exchange(said_, true)) {
        log_.error("{}: connections are closed: too many open files; raise the limit (ulimit -n)", whose_);
    }
    return waited;
}

}  // namespace railmux::base

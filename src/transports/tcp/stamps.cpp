#include "transports/tcp/stamps.hpp"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <ctime>

namespace railmux::transports::tcp {

namespace {
constexpr base::Nanoseconds in_ns(const timespec& time) noexcept { return time.tv_sec * base::second + time.tv_nsec; }

/// The stamp is of the clock that people set, whose difference to ours may have changed since; not after now, that is sure.
base::Nanoseconds by_our_clock(const timespec& stamp) noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const auto age = in_ns(now) - in_ns(stamp);
    return age < 0 ? 0 : base::now_ns() - age;
}
}  // namespace

void want_stamps(int socket) noexcept {
    const unsigned what = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
    ::setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, &what, sizeof what);
}

ssize_t read_stamped(int socket, std::span<iovec> into, base::Nanoseconds& came) noexcept {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(scm_timestamping))> control;
    msghdr message{};
    message.msg_iov = into.data();
    message.msg_iovlen = into.size();
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const auto got = ::recvmsg(socket, &message, MSG_DONTWAIT);
    came = 0;
    if (got < stamped_bytes) return got;
    const auto* told = CMSG_FIRSTHDR(&message);
    if (told == nullptr || told->cmsg_level != SOL_SOCKET || told->cmsg_type != SCM_TIMESTAMPING) return got;
    scm_timestamping stamps;
    std::memcpy(&stamps, CMSG_DATA(told), sizeof stamps);
    if (stamps.ts[0].tv_sec != 0) came = by_our_clock(stamps.ts[0]);
    return got;
}

}  // namespace railmux::transports::tcp

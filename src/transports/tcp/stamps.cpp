#include "transports/tcp/stamps.hpp"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace railmux::transports::tcp {

namespace {
constexpr base::Nanoseconds in_ns(const timespec& time) noexcept { return time.tv_sec * base::second + time.tv_nsec; }

// Clocks that are disciplined run apart by no more than this part (500 ppm), and two looks take so long at most.
constexpr base::Nanoseconds slewed_part = 2000;
constexpr base::Nanoseconds look_time = 20 * base::microsecond;
}  // namespace

base::Nanoseconds WallClock::by_ours(base::Nanoseconds stamp) noexcept {
    timespec wall{};
    ::clock_gettime(CLOCK_REALTIME, &wall);
    const auto now = base::now_ns();
    const auto ahead = in_ns(wall) - now;
    const auto doubt = look_time + (now - at_) / slewed_part;
    const bool known = at_ == 0 || std::abs(ahead - ahead_) <= doubt;
    ahead_ = ahead;
    at_ = now;
    return known && stamp <= in_ns(wall) ? stamp - ahead : 0;
}

bool set_stamping(int socket, Stamping::Turn turn) noexcept {
    if (turn == Stamping::Turn::none) return true;
    const unsigned what = turn == Stamping::Turn::begin ? SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE : 0;
    return ::setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPING, &what, sizeof what) == 0;
}

ssize_t read_stamped(int socket, std::span<iovec> into, WallClock& clock, base::Nanoseconds& came) noexcept {
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
    if (stamps.ts[0].tv_sec != 0) came = clock.by_ours(in_ns(stamps.ts[0]));
    return got;
}

}  // namespace railmux::transports::tcp

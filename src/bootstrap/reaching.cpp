// The connecting half of endpoint.hpp.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <railmux/error.hpp>

#include "bootstrap/endpoint.hpp"
#include "bootstrap/resolving.hpp"

namespace railmux::bootstrap {

namespace {

constexpr base::Nanoseconds retry_pause = 20 * base::millisecond;
constexpr base::Nanoseconds address_limit = 2 * base::second;  // for one of several that says nothing

struct Target {
    sockaddr_storage address{};
    socklen_t length = 0;
    [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

template <typename Address>
Target target(const Address* address, std::size_t length) {
    Target result{.length = static_cast<socklen_t>(length)};
    std::memcpy(&result.address, address, length);
    return result;
}

std::vector<Target> targets_of(std::string_view where) {
    if (where.starts_with(unix_prefix)) {
        const auto address = unix_address(where.substr(unix_prefix.size()));
        return {target(&address, sizeof address)};
    }
    const auto place = parse_place(where);
    std::string error;
    std::vector<Target> targets;
    for (const auto& endpoint : resolve(place.host.empty() ? "localhost" : place.host, place.port, error)) {
        targets.push_back(target(endpoint.data(), endpoint.size()));
    }
    if (targets.empty()) {
        throw Error(ErrorCode::unreachable, fmt::format("{}: {}", where, error),
                    "check the name; an address works too");
    }
    return targets;
}

/// A connect to a local port from the range of own ports can meet itself while nobody listens there (TCP's simultaneous
/// open); that is no peer.
bool met_itself(int socket) {
    Target own{.length = sizeof own.address};
    Target other{.length = sizeof other.address};
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&own.address), &own.length) != 0 ||
        ::getpeername(socket, reinterpret_cast<sockaddr*>(&other.address), &other.length) != 0) {
        return false;
    }
    if (own.get()->sa_family == AF_UNIX || own.length != other.length ||
        std::memcmp(&own.address, &other.address, own.length) != 0) {
        return false;
    }
    const linger at_once{1, 0};  // leaves no TIME_WAIT on the port, which somebody may be about to listen on
    ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    return true;
}

/// One attempt; 0 when connected, the error otherwise.
int try_connect(const Target& to, base::FileDescriptor& socket, base::Nanoseconds deadline) {
    socket.reset(::socket(to.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) return errno;
    if (::connect(socket.get(), to.get(), to.length) != 0) {
        if (errno != EINPROGRESS) return errno;
        pollfd wait{socket.get(), POLLOUT, 0};
        const auto left = std::clamp<base::Nanoseconds>((deadline - base::now_ns()) / base::millisecond, 1, 1'000'000);
        if (::poll(&wait, 1, static_cast<int>(left)) <= 0) return ETIMEDOUT;
        int error = 0;
        socklen_t size = sizeof error;
        ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) return error;
    }
    return met_itself(socket.get()) ? ECONNREFUSED : 0;
}

bool may_come_yet(int error, const Target& target) {
    if (target.get()->sa_family == AF_UNIX) return error == EAGAIN;  // its queue is full
    return error == ECONNREFUSED || error == ETIMEDOUT || error == EHOSTUNREACH || error == ECONNRESET;
}

}  // namespace

base::FileDescriptor connect_to(std::string_view where, base::Nanoseconds deadline) {
    const auto targets = targets_of(where);
    base::FileDescriptor socket;
    std::vector<std::string> causes;
    for (bool again = true; again;) {
        again = false;
        causes.clear();
        for (const auto& target : targets) {
            const auto limit = targets.size() > 1 ? std::min(deadline, base::now_ns() + address_limit) : deadline;
            const int error = try_connect(target, socket, limit);
            if (error == 0) return socket;
            again = again || may_come_yet(error, target);
            const auto* cause = std::strerror(error);
            if (std::find(causes.begin(), causes.end(), cause) == causes.end()) causes.emplace_back(cause);
        }
        if (base::now_ns() + retry_pause >= deadline) break;
        if (again) ::poll(nullptr, 0, static_cast<int>(retry_pause / base::millisecond));
    }
    throw Error(ErrorCode::unreachable, fmt::format("{} cannot be reached: {}", where, fmt::join(causes, "; ")),
                "is the other side started with --listen, and does no firewall stand between?");
}

}  // namespace railmux::bootstrap

// The connecting half of endpoint.hpp.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <railmux/error.hpp>

#include "bootstrap/endpoint.hpp"
#include "bootstrap/resolving.hpp"

namespace railmux::bootstrap {

namespace {

constexpr base::Nanoseconds retry_pause = 20 * base::millisecond;
constexpr base::Nanoseconds quiet_time = 200 * base::millisecond;  // two sides started at once need not be told
constexpr base::Nanoseconds address_limit = 2 * base::second;      // for one of several that says nothing

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
    const auto endpoints = place.host.empty() ? loopback(place.port) : resolve(place.host, place.port, error);
    for (const auto& endpoint : endpoints) {
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

/// Starts an attempt: 0 when connected at once, EINPROGRESS while it is under way, else the error.
int begin(const Target& to, base::FileDescriptor& socket) {
    socket.reset(::socket(to.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) return errno;
    return ::connect(socket.get(), to.get(), to.length) == 0 ? 0 : errno;
}

/// What has become of it.
int outcome(int socket) {
    pollfd look{socket, POLLOUT, 0};
    if (::poll(&look, 1, 0) <= 0) return EINPROGRESS;
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

bool may_come_yet(int error, const Target& target) {
    if (target.get()->sa_family == AF_UNIX) return error == EAGAIN;  // its queue is full
    return error == ECONNREFUSED || error == ETIMEDOUT || error == EHOSTUNREACH || error == ECONNRESET;
}

}  // namespace

struct Reaching::Parts {
    static constexpr auto never = base::never;

    std::string where;
    base::Nanoseconds deadline = 0;
    std::vector<Target> targets;
    std::size_t at = 0;
    base::FileDescriptor socket;      // of the attempt under way
    base::Nanoseconds limit = 0;      // its time
    base::Nanoseconds resume = 0;     // no attempt before
    bool again = false;               // one of this round's failures may be over soon
    base::Nanoseconds told_at = 0;    // when whoever waits is told why
    std::vector<std::string> causes;  // of this round
    std::string last_causes;          // of the one before: an attempt may be under way that will end no better
    std::string trouble;

    [[nodiscard]] std::string summary() const { return fmt::format("{}", fmt::join(causes, "; ")); }

    int attempt(base::Nanoseconds now) {
        int error = 0;
        if (!socket.valid()) {
            if (at == 0) causes.clear();
            limit = targets.size() > 1 ? std::min(deadline, now + address_limit) : deadline;
            error = begin(targets[at], socket);
        } else {
            error = outcome(socket.get());
            if (error == EINPROGRESS && now >= limit) error = ETIMEDOUT;
        }
        return error == 0 && met_itself(socket.get()) ? ECONNREFUSED : error;
    }

    void failed(int error, base::Nanoseconds now) {
        socket.reset();
        again = may_come_yet(error, targets[at]) || again;
        const auto* cause = std::strerror(error);
        if (std::find(causes.begin(), causes.end(), cause) == causes.end()) causes.emplace_back(cause);
        at = (at + 1) % targets.size();
        if (at != 0) return;
        if (!again || now + retry_pause >= deadline) {
            throw Error(ErrorCode::unreachable, fmt::format("{} cannot be reached: {}", where, summary()),
                        "is the other side started with --listen, and does no firewall stand between?");
        }
        again = false;
        last_causes = summary();
        resume = now + retry_pause;
    }
};

Reaching::Reaching(std::string_view where, base::Nanoseconds deadline) : parts_(std::make_unique<Parts>()) {
    parts_->where = where;
    parts_->deadline = deadline;
    parts_->targets = targets_of(where);
    parts_->told_at = base::now_ns() + quiet_time;
}

Reaching::~Reaching() = default;

base::FileDescriptor Reaching::poll(base::Nanoseconds now) {
    while (now >= parts_->resume) {
        const int error = parts_->attempt(now);
        if (error == 0) return std::move(parts_->socket);
        if (error == EINPROGRESS) break;
        parts_->failed(error, now);
    }
    if (now >= parts_->told_at) {
        const auto why = parts_->causes.empty() ? parts_->last_causes : parts_->summary();
        parts_->trouble = why.empty() ? "no answer yet" : why;
        parts_->told_at = Parts::never;
    }
    return {};
}

int Reaching::descriptor() const noexcept { return parts_->socket.get(); }

base::Nanoseconds Reaching::wake() const noexcept {
    return std::min(parts_->told_at, parts_->socket.valid() ? parts_->limit : parts_->resume);
}

std::string Reaching::take_trouble() { return std::exchange(parts_->trouble, {}); }

base::FileDescriptor connect_to(std::string_view where, base::Nanoseconds deadline) {
    Reaching reaching(where, deadline);
    while (true) {
        const auto now = base::now_ns();
        if (auto socket = reaching.poll(now); socket.valid()) return socket;
        pollfd wait{reaching.descriptor(), POLLOUT, 0};
        const auto left = (reaching.wake() - now) / base::millisecond + 1;
        ::poll(&wait, 1, static_cast<int>(std::clamp<base::Nanoseconds>(left, 1, 1'000'000)));
    }
}

}  // namespace railmux::bootstrap

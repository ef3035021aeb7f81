#include "transports/shm/socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <system_error>

namespace railmux::transports::shm {

namespace {

constexpr int backlog = 1024;  // connections that wait for a process that computes; the kernel allows 4096

struct Name {
    sockaddr_un address{};
    socklen_t size = 0;

    explicit Name(const std::string& name) noexcept {
        address.sun_family = AF_UNIX;  // a first byte of zero: abstract
        std::memcpy(address.sun_path + 1, name.data(), name.size());
        size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    }
    [[nodiscard]] const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address); }
};

base::FileDescriptor new_socket() noexcept {
    return base::FileDescriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Error trouble(ErrorCode code, std::string_view what) {
    return {code, fmt::format("{}: {}", what, std::system_category().message(errno))};
}

/// Room for the descriptors of one message, as the kernel wants it.
union Control {
    cmsghdr header;
    std::array<char, CMSG_SPACE(most_descriptors * sizeof(int))> bytes;
};

}  // namespace

base::Result<base::FileDescriptor> listen_at(const std::string& name) {
    const Name at(name);
    auto socket = new_socket();
    if (!socket.valid() || ::bind(socket.get(), at.get(), at.size) != 0 || ::listen(socket.get(), backlog) != 0) {
        return trouble(ErrorCode::system, "no unix socket to listen on");
    }
    return socket;
}

base::Result<base::FileDescriptor> connect_to(const std::string& name) {
    const Name at(name);
    auto socket = new_socket();
    if (!socket.valid()) return trouble(ErrorCode::unreachable, "no unix socket");
    if (::connect(socket.get(), at.get(), at.size) == 0) return socket;
    if (errno == ECONNREFUSED) return Error(ErrorCode::unreachable, "nobody is there any more");
    if (errno == EAGAIN) return Error(ErrorCode::unreachable, "too many connections wait for it to accept them");
    return trouble(ErrorCode::unreachable, "no connection");
}

base::Result<OtherEnd> other_end(const base::FileDescriptor& socket) {
    ucred who{};
    socklen_t size = sizeof who;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
        return trouble(ErrorCode::system, "who it is cannot be seen");
    }
    return OtherEnd{.process = who.pid, .user = who.uid};
}

bool send_message(const base::FileDescriptor& socket, std::span<const std::byte> bytes,
                  std::span<const int> descriptors) noexcept {
    iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};  // only read
    Control control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    assert(descriptors.size() <= most_descriptors);
    if (!descriptors.empty()) {
        message.msg_control = control.bytes.data();
        message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        auto* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    // A message goes whole or not at all; a new socket has room for one.
    return ::sendmsg(socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

Message receive_message(const base::FileDescriptor& socket, std::span<std::byte> room) noexcept {
    iovec piece{room.data(), room.size()};
    Control control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    Message received;
    const auto got = ::recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) {
        const bool later = errno == EAGAIN || errno == EINTR;
        received.state = later ? Message::State::nothing : Message::State::hung_up;
        return received;
    }
    std::size_t count = 0;
    for (auto* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        // What does not fit into `control` has been closed by the kernel.
        const auto descriptors = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < descriptors; ++i) {
            int descriptor = -1;
            std::memcpy(&descriptor, CMSG_DATA(header) + i * sizeof(int), sizeof descriptor);
            base::FileDescriptor owned(descriptor);
            if (count < received.descriptors.size()) received.descriptors[count++] = std::move(owned);
        }
    }
    const bool whole = got > 0 && (message.msg_flags & MSG_TRUNC) == 0;
    received.state = whole ? Message::State::arrived : Message::State::hung_up;
    if (whole) received.bytes = room.first(static_cast<std::size_t>(got));
    return received;
}

bool is_bell(const base::FileDescriptor& descriptor) noexcept {
    if (const int flags = ::fcntl(descriptor.get(), F_GETFL); flags < 0 || (flags & O_NONBLOCK) == 0) return false;
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", descriptor.get());
    std::array<char, 64> target{};
    const auto size = ::readlink(path.data(), target.data(), target.size());
    return size > 0 &&
           std::string_view(target.data(), static_cast<std::size_t>(size)).starts_with("anon_inode:[eventfd");
}

}  // namespace railmux::transports::shm

#include "transports/tcp/netlink.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include <railmux/error.hpp>

namespace railmux::transports::tcp {

namespace {

/// What is wrong with an answer: an errno; 0 if nothing is.
using Failure = int;

/// Each message in `bytes`; false at the end of a dump or at an error message.
bool walk(std::span<const std::byte> bytes, const Netlink::Handler& handler, Failure& failure) {
    while (bytes.size() >= sizeof(nlmsghdr)) {
        nlmsghdr header;
        std::memcpy(&header, bytes.data(), sizeof header);
        if (header.nlmsg_len < sizeof header || header.nlmsg_len > bytes.size()) return false;
        if ((header.nlmsg_flags & NLM_F_DUMP_INTR) != 0) failure = EAGAIN;  // changed meanwhile: some may be missing
        if (header.nlmsg_type == NLMSG_DONE) return false;
        if (header.nlmsg_type == NLMSG_ERROR) {
            int code = 0;
            std::memcpy(&code, bytes.data() + NLMSG_HDRLEN, sizeof code);
            if (code != 0) failure = -code;
            return false;
        }
        handler(*reinterpret_cast<const nlmsghdr*>(bytes.data()));
        if ((header.nlmsg_flags & NLM_F_MULTI) == 0) return false;
        bytes = bytes.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), bytes.size()));
    }
    return true;
}

}  // namespace

Netlink::Netlink(unsigned groups) : socket_(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = groups;
    if (!socket_.valid() || ::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
        throw Error(
            ErrorCode::system, std::string("the kernel does not tell its interfaces: ") + std::strerror(errno),
            "allow netlink sockets where a container's filter forbids them, or do without: RAILMUX_TRANSPORTS=^tcp");
    }
}

bool Netlink::ask(nlmsghdr& request, const Handler& handler) {
    request.nlmsg_flags = static_cast<std::uint16_t>(request.nlmsg_flags | NLM_F_REQUEST);
    if (::send(socket_.get(), &request, request.nlmsg_len, 0) < 0) return false;
    alignas(nlmsghdr) std::array<std::byte, 32 * 1024> buffer;
    Failure failure = 0;
    while (true) {
        const auto got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        if (walk(std::span(buffer).first(static_cast<std::size_t>(got)), handler, failure)) continue;
        errno = failure;
        return failure == 0;
    }
}

bool Netlink::news(const Handler& handler) {
    alignas(nlmsghdr) std::array<std::byte, 8 * 1024> buffer;
    Failure ignored = 0;
    bool complete = true;
    while (true) {
        const auto got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0 && (errno == EINTR || errno == ENOBUFS)) {
            complete = complete && errno == EINTR;
            continue;
        }
        if (got <= 0) return complete;
        walk(std::span(buffer).first(static_cast<std::size_t>(got)), handler, ignored);
    }
}

void for_each_attribute(std::span<const std::byte> bytes, const Visitor& visit) {
    while (bytes.size() >= sizeof(rtattr)) {
        rtattr attribute;
        std::memcpy(&attribute, bytes.data(), sizeof attribute);
        if (attribute.rta_len < sizeof attribute || attribute.rta_len > bytes.size()) return;
        visit(attribute.rta_type & NLA_TYPE_MASK, bytes.subspan(RTA_LENGTH(0), attribute.rta_len - RTA_LENGTH(0)));
        bytes = bytes.subspan(std::min<std::size_t>(RTA_ALIGN(attribute.rta_len), bytes.size()));
    }
}

}  // namespace railmux::transports::tcp

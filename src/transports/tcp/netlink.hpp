// Netlink: questions to the kernel about interfaces and routes, and its news about them.
//
// Threads: one thread at a time per object.
// Lifetime: owns its socket.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstddef>
#include <functional>
#include <span>

#include "base/file_descriptor.hpp"

namespace railmux::transports::tcp {

class Netlink {
public:
    /// Joins the multicast `groups` (RTMGRP_*), 0 for questions only. Throws Error(system).
    explicit Netlink(unsigned groups = 0);

    using Handler = std::function<void(const nlmsghdr&)>;
    /// Sends one request and hands every answer to `handler`. False, with errno, when the kernel answers with an error, and
    /// when what a dump tells of changed meanwhile (EAGAIN: ask again).
    bool ask(nlmsghdr& request, const Handler& handler);
    /// Hands over what has been announced since; never blocks. False when the kernel had to drop some of it.
    bool news(const Handler& handler);

    [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

private:
    base::FileDescriptor socket_;
};

/// The body of a message, which the kernel guarantees to hold a T.
template <typename T>
[[nodiscard]] const T* body_of(const nlmsghdr& message) noexcept {
    return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(&message) + NLMSG_HDRLEN);
}

using Visitor = std::function<void(unsigned short type, std::span<const std::byte> bytes)>;

/// Each of the attributes in `bytes`; stops at one that does not fit.
void for_each_attribute(std::span<const std::byte> bytes, const Visitor& visit);

/// The attributes of a message behind its body, a Body.
template <typename Body>
void for_each_attribute(const nlmsghdr& message, const Visitor& visit) {
    constexpr std::size_t front = NLMSG_LENGTH(NLMSG_ALIGN(sizeof(Body)));
    const auto* start = reinterpret_cast<const std::byte*>(&message);
    if (message.nlmsg_len > front) for_each_attribute({start + front, message.nlmsg_len - front}, visit);
}

}  // namespace railmux::transports::tcp

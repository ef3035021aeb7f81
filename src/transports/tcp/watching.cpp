// tcp::Rail: what becomes of its interface, and whether its bytes really leave by it.
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "transports/tcp/rail.hpp"
#include "transports/tcp/route.hpp"

namespace railmux::transports::tcp {

namespace {
/// Kernels before 4.6 tell less.
constexpr bool has_segment_counts(std::size_t length) {
    return length >= offsetof(tcp_info, tcpi_data_segs_in) + sizeof(tcp_info::tcpi_data_segs_in);
}
}  // namespace

void Rail::rail_down(std::string_view cause) {
    if (std::exchange(down_, true)) return;
    links_.for_each([&](Link& link) {
        if (link.phase != LinkPhase::free) kill(link, cause);
    });
    events_.tell({.kind = EventKind::rail_down}, cause);
}

/// It listens still: sockets outlive what becomes of their interface; or again, at new addresses.
void Rail::rail_up(const Interface& interface) {
    down_ = false;
    interface_index_ = interface.index;  // another one, if it was made anew
    counter_at_start_ = bytes_sent_by(interface_index_);
    sent_outside_ = 0;
    next_check_ = first_check;
    departures_ = {};
    events_.tell({.kind = EventKind::rail_up});
}

void Rail::read_netlink() {
    bool ours = false;
    bool others = false;
    const bool complete = netlink_->news([&](const nlmsghdr& message) {
        const bool link = message.nlmsg_type == RTM_NEWLINK || message.nlmsg_type == RTM_DELLINK;
        const int index =
            link ? body_of<ifinfomsg>(message)->ifi_index : static_cast<int>(body_of<ifaddrmsg>(message)->ifa_index);
        ours = ours || index == interface_index_ || down_;  // what is made anew has another index
        const bool gone = message.nlmsg_type == RTM_DELLINK || message.nlmsg_type == RTM_DELADDR;
        others = others || (index != interface_index_ && !gone);
    });
    if (others || !complete) events_.tell({.kind = EventKind::devices_changed});
    look_owed_ = look_owed_ || !complete || ours;
    if (merged_ || !look_owed_) return;
    std::vector<Interface> interfaces;
    try {
        interfaces = list_interfaces();
    } catch (const Error&) {
        return;  // out of descriptors, or they change all the time: with the next news
    }
    look_owed_ = false;
    const auto by_name = std::ranges::find(interfaces, interface_, &Interface::name);
    const auto by_index = std::ranges::find(interfaces, interface_index_, &Interface::index);
    const auto found = by_index != interfaces.end() ? by_index : by_name;
    judge_interface(found == interfaces.end() ? nullptr : &*found);
}

void Rail::judge_interface(const Interface* found) {
    if (const auto trouble = trouble_of(found); !trouble.empty()) {
        rail_down(trouble);
        if (!listen_anew(found)) return;
    }
    if (down_) return rail_up(*found);
    for (const auto& ours : address_.endpoints) {
        if (!found->loopback && !found->has(ours.at)) drop_address(ours.at);
    }
}

/// An interface that works, and has lost all its addresses, may have others now.
bool Rail::listen_anew(const Interface* found) {
    if (found == nullptr || !found->up || !found->carrier) return false;
    const auto endpoints = choose_(*found);
    if (endpoints.empty()) return false;
    try {
        listen(endpoints);
    } catch (const Error& error) {
        log_.warning("rail {}: {}; {}", traits_.name, error.what(), error.cure());
        return false;
    }
    log_.info("rail {}: listens at {} now", traits_.name, listeners_.front().endpoint.text());
    return true;
}

/// Why nothing can come or go by the interface; empty if something can.
std::string Rail::trouble_of(const Interface* found) const {
    if (found == nullptr) return "interface " + interface_ + " has vanished";
    if (!found->up) return "interface " + interface_ + " was taken down";
    if (found->loopback) return {};  // all of 127.0.0.0/8 is local without being listed
    if (!found->carrier) return "interface " + interface_ + " has no carrier";
    std::string lost;
    for (const auto& ours : address_.endpoints) {
        if (found->has(ours.at)) return {};
        lost += (lost.empty() ? "" : " and ") + ours.at.text();
    }
    return fmt::format("interface {} lost its address {}", interface_, lost);
}

/// Of several addresses one is gone, and with it the links that begin there.
void Rail::drop_address(const base::IpAddress& lost) {
    const auto cause = fmt::format("interface {} lost its address {}", interface_, lost.text());
    links_.for_each([&](Link& link) {
        if (link.phase == LinkPhase::free || !link.socket.valid()) return;
        if (local_end(link.socket.get()).at.same_address(lost)) kill(link, cause);
    });
}

/// The kernel of the other side acknowledges while its process computes; so it does with a full receive buffer, where probes of
/// its window take the place of data.
Pulse Rail::pulse(LinkId id) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link == nullptr || link->phase != LinkPhase::up) return {};
    tcp_info info{};
    socklen_t length = sizeof info;
    if (::getsockopt(link->socket.get(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || !has_segment_counts(length)) {
        return {};
    }
    // Of probes of a closed window a kernel answers one in 500 ms, and the next but one is sent 600 ms after the last answer:
    // only two without an answer tell something. What carries data is answered each time.
    return {.known = true,
            .outstanding = info.tcpi_unacked > 0 || info.tcpi_probes > 1,
            .heard = info.tcpi_segs_in,
            .received = info.tcpi_data_segs_in,
            .asked = info.tcpi_total_retrans};
}

void Rail::want_arrivals(LinkId id) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* link = links_.find(id);
    if (link != nullptr && link->tls == nullptr) link->read.stamping.want();
}

std::optional<std::uint64_t> Rail::underway(LinkId id) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    const Link* link = links_.find(id);
    return link == nullptr || link->phase != LinkPhase::up ? std::nullopt : unconfirmed(*link);
}

/// Bytes that the socket has, or that wait for room in it encrypted, and the other side's kernel has not acknowledged.
std::optional<std::uint64_t> Rail::unconfirmed(const Link& link) noexcept {
    int queued = 0;
    if (::ioctl(link.socket.get(), SIOCOUTQ, &queued) != 0) return std::nullopt;
    return static_cast<std::uint64_t>(queued) + (link.tls == nullptr ? 0 : link.tls->waiting());
}

/// Whether the packets of some link leave by another interface, as the kernel's routes have it.
bool Rail::routed_elsewhere() {
    bool any = false;
    links_.for_each([&](const Link& link) {
        if (any || link.phase != LinkPhase::up || link.same_host) return;
        any = leaves_elsewhere(local_end(link.socket.get()).at, remote_end(link.socket.get()).at, interface_index_);
    });
    return any;
}

void Rail::check_counters() {
    next_check_ = sent_outside_ * 2;
    if (down_ || !counter_at_start_) return;
    const auto now = base::now_ns();
    if (!departures_.tells(now)) {
        next_check_ = sent_outside_ + first_check;
        return;
    }
    // What still waits in the sockets has not left by any interface. It is asked for before the counter is: what leaves between
    // the two, and a process that is preempted there gives it time, is then counted at the interface, not missing from it.
    std::uint64_t waiting = 0;
    links_.for_each([&](const Link& link) {
        if (link.phase == LinkPhase::up) waiting += unconfirmed(link).value_or(0);
    });
    const auto left = sent_outside_ - std::min(sent_outside_, waiting);
    const auto counter = bytes_sent_by(interface_index_);
    if (!counter) return;
    const bool elsewhere = departures_.elsewhere(left, *counter - *counter_at_start_, now);
    const bool suspected = !departures_.tells(now);
    if (!elsewhere && !(suspected && routed_elsewhere())) {
        if (suspected) next_check_ = sent_outside_ + first_check;
        return;
    }
    merged_ = true;
    stop_listening();
    rail_down(
        fmt::format("by the counter of {}, this rail's bytes leave by another interface: merged with that one's rail; "
                    "to use both: {}",
                    interface_, same_subnet_cure(address_.endpoints.front().at, interface_, interface_index_)));
}

}  // namespace railmux::transports::tcp

// tcp::Rail: what becomes of its interface, and whether its bytes really leave by it.
#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <fmt/format.h>

#include <algorithm>

#include "transports/tcp/rail.hpp"
#include "transports/tcp/route.hpp"

namespace railmux::transports::tcp {

void Rail::rail_down(std::string_view cause) {
    if (std::exchange(down_, true)) return;
    links_.for_each([&](Link& link) {
        if (link.phase != LinkPhase::free) kill(link, cause);
    });
    listeners_.clear();
    events_.tell({.kind = EventKind::rail_down}, cause);
}

void Rail::read_netlink() {
    bool ours = false;
    const bool complete = netlink_.news([&](const nlmsghdr& message) {
        const bool link = message.nlmsg_type == RTM_NEWLINK || message.nlmsg_type == RTM_DELLINK;
        const int index =
            link ? body_of<ifinfomsg>(message)->ifi_index : static_cast<int>(body_of<ifaddrmsg>(message)->ifa_index);
        ours = ours || index == interface_index_;
    });
    if (down_ || (complete && !ours)) return;
    if (const auto trouble = interface_trouble(); !trouble.empty()) rail_down(trouble);
}

std::string Rail::interface_trouble() const {
    std::vector<Interface> interfaces;
    try {
        interfaces = list_interfaces();
    } catch (const Error&) {
        return {};  // out of descriptors, most likely: no news of the interface
    }
    const auto found = std::find_if(interfaces.begin(), interfaces.end(),
                                    [&](const Interface& interface) { return interface.index == interface_index_; });
    if (found == interfaces.end()) return "interface " + interface_ + " has vanished";
    if (!found->up) return "interface " + interface_ + " was taken down";
    if (found->loopback) return {};  // all of 127.0.0.0/8 is local without being listed
    for (const auto& ours : address_.endpoints) {
        const bool there = std::any_of(found->addresses.begin(), found->addresses.end(),
                                       [&](const auto& a) { return a.at.same_address(ours.at); });
        if (!there) return fmt::format("interface {} lost its address {}", interface_, ours.at.text());
    }
    return {};
}

void Rail::check_counters() {
    next_check_ = sent_outside_ * 2;
    const auto counter = down_ || !counter_at_start_ ? std::nullopt : bytes_sent_by(interface_index_);
    if (!counter) return;
    // What still waits in the sockets has not left by any interface; half of the rest is a generous margin.
    std::uint64_t waiting = 0;
    links_.for_each([&](const Link& link) {
        int queued = 0;
        if (link.phase == LinkPhase::up && ::ioctl(link.socket.get(), SIOCOUTQ, &queued) == 0) {
            waiting += static_cast<std::uint64_t>(queued);
        }
    });
    const auto expected = sent_outside_ - std::min(sent_outside_, waiting);
    if (*counter - *counter_at_start_ >= expected / 2) return;
    rail_down(
        fmt::format("by the counter of {}, this rail's bytes leave by another interface: merged with that one's rail; "
                    "to use both: {}",
                    interface_, same_subnet_cure(address_.endpoints.front().at, interface_, interface_index_)));
}

}  // namespace railmux::transports::tcp

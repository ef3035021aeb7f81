#include "transports/tcp/interfaces.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>

#include <railmux/error.hpp>

#include "base/file_descriptor.hpp"
#include "transports/tcp/netlink.hpp"

namespace railmux::transports::tcp {

namespace {

constexpr std::string_view doubtful_kinds =
    " dummy ifb nlmon netdevsim vcan "  // lead nowhere
    " vxlan geneve bareudp gtp gre gretap erspan ip6gre ip6gretap ip6erspan ipip sit ip6tnl vti vti6 xfrm "
    " tun ppp wireguard ovpn "  // tunnels, too, with an end in user space or encrypted
    " openvswitch virt_wifi ";  // switches

/// By ioctl: /sys may show the interfaces of another network namespace.
std::uint64_t speed_of(int socket, const std::string& interface) {
    ethtool_cmd command{};
    command.cmd = ETHTOOL_GSET;
    ifreq request{};
    interface.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&command);
    if (::ioctl(socket, SIOCETHTOOL, &request) != 0) return 0;
    const auto mbit = ethtool_cmd_speed(&command);
    return mbit == static_cast<std::uint32_t>(SPEED_UNKNOWN) ? 0 : std::uint64_t{mbit} * 1'000'000;
}

int numa_node_of(const Interface& interface) {
    const auto folder = "/sys/class/net/" + interface.name;
    int index = 0;
    int node = -1;
    if (std::ifstream(folder + "/ifindex") >> index && index == interface.index) {
        std::ifstream file(folder + "/device/numa_node");
        if (!(file >> node)) node = -1;
    }
    return node;
}

std::string_view text_of(std::span<const std::byte> bytes) {
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text.substr(0, text.find('\0'));
}

int number_of(std::span<const std::byte> bytes) {
    int value = 0;
    std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
    return value;
}

struct Request {
    nlmsghdr header{};
    union {
        ifinfomsg link;
        ifaddrmsg address;
    };
    Request(std::uint16_t type) : link{} {  // NOLINT: local to this file
        header.nlmsg_len = sizeof *this;
        header.nlmsg_type = type;
        header.nlmsg_flags = NLM_F_DUMP;
    }
};

struct RawLink {
    Interface interface;
    int master = 0;
};

RawLink parse_link(const nlmsghdr& message) {
    const auto* info = body_of<ifinfomsg>(message);
    RawLink link;
    auto& result = link.interface;
    result.index = info->ifi_index;
    result.up = (info->ifi_flags & IFF_UP) != 0;
    result.carrier = (info->ifi_flags & IFF_RUNNING) != 0;
    result.loopback = (info->ifi_flags & IFF_LOOPBACK) != 0;
    result.by_processors = result.loopback;
    result.kind = result.loopback ? "loopback" : info->ifi_type == ARPHRD_INFINIBAND ? "infiniband" : "ethernet";
    for_each_attribute<ifinfomsg>(message, [&](auto type, auto bytes) {
        if (type == IFLA_IFNAME) result.name = text_of(bytes);
        if (type == IFLA_MASTER) link.master = number_of(bytes);
        if (type != IFLA_LINKINFO) return;
        for_each_attribute(bytes, [&](auto nested, auto value) {
            if (nested == IFLA_INFO_KIND) result.kind = text_of(value);
        });
    });
    return link;
}

void add_address(std::map<int, RawLink>& links, const nlmsghdr& message) {
    const auto* info = body_of<ifaddrmsg>(message);
    const auto link = links.find(static_cast<int>(info->ifa_index));
    if (link == links.end() || (info->ifa_family != AF_INET && info->ifa_family != AF_INET6)) return;
    InterfaceAddress address{{.family = info->ifa_family, .prefix = info->ifa_prefixlen}};
    std::uint32_t flags = info->ifa_flags;
    address.link_local = info->ifa_family == AF_INET6 && info->ifa_scope == RT_SCOPE_LINK;
    bool local_seen = false;
    for_each_attribute<ifaddrmsg>(message, [&](auto type, auto bytes) {
        if (type == IFA_FLAGS) flags = static_cast<std::uint32_t>(number_of(bytes));
        // On a point-to-point link IFA_ADDRESS is the other end; IFA_LOCAL, where it is given, is ours.
        if (type != IFA_LOCAL && (type != IFA_ADDRESS || local_seen)) return;
        local_seen = type == IFA_LOCAL;
        std::memcpy(&address.at.bytes, bytes.data(), std::min(sizeof address.at.bytes, bytes.size()));
    });
    address.tentative =
        (flags & IFA_F_DADFAILED) != 0 || (flags & (IFA_F_TENTATIVE | IFA_F_OPTIMISTIC)) == IFA_F_TENTATIVE;
    address.second_choice = address.at.family == AF_INET6 && (flags & (IFA_F_TEMPORARY | IFA_F_DEPRECATED)) != 0;
    link->second.interface.addresses.push_back(address);
}

/// All interfaces with their addresses; nothing, with errno, when the kernel did not tell all of them.
std::optional<std::map<int, RawLink>> ask_for_links() {
    Netlink netlink;
    std::map<int, RawLink> links;
    Request link_request(RTM_GETLINK);
    const auto take_link = [&](const nlmsghdr& message) {
        if (message.nlmsg_type != RTM_NEWLINK) return;
        auto link = parse_link(message);
        links[link.interface.index] = std::move(link);
    };
    if (!netlink.ask(link_request.header, take_link)) return std::nullopt;
    Request address_request(RTM_GETADDR);
    const auto take_address = [&](const nlmsghdr& message) {
        if (message.nlmsg_type == RTM_NEWADDR) add_address(links, message);
    };
    if (!netlink.ask(address_request.header, take_address)) return std::nullopt;
    return links;
}

std::map<int, RawLink> list_links() {
    constexpr int most = 20;  // where interfaces come and go all the time
    for (int i = 0; i < most; ++i) {
        if (auto links = ask_for_links(); links) return std::move(*links);
        if (errno != EAGAIN) break;
    }
    throw Error(
        ErrorCode::system, std::string("the kernel does not list its interfaces: ") + std::strerror(errno),
        "allow netlink sockets where a container's filter forbids them, or do without: RAILMUX_TRANSPORTS=^tcp");
}

}  // namespace

bool Interface::has(const base::IpAddress& address) const {
    return std::ranges::any_of(addresses, [&](const auto& a) { return !a.tentative && a.at.same_address(address); });
}

std::string Interface::doubt() const {
    if (kind == "bridge") return "bridge (of containers or virtual machines, usually)";
    if (!master.empty()) return "enslaved to " + master_kind + " " + master;
    if (doubtful_kinds.find(" " + kind + " ") != std::string_view::npos) return kind;
    return {};
}

std::string Interface::obstacle() const {
    if (!up) return "down";
    if (!carrier && !loopback) return "no carrier";
    if (addresses.empty()) return "no address";
    if (std::any_of(addresses.begin(), addresses.end(), [](const auto& a) { return a.usable(); })) return {};
    const bool soon = std::any_of(addresses.begin(), addresses.end(), [](const auto& a) { return !a.link_local; });
    return soon ? "its address is still checked for duplicates" : "link-local addresses only";
}

std::vector<Interface> list_interfaces() {
    const auto links = list_links();
    std::vector<Interface> interfaces;
    const base::FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    for (const auto& [index, link] : links) {
        auto interface = link.interface;
        if (const auto master = links.find(link.master); link.master != 0 && master != links.end()) {
            interface.master = master->second.interface.name;
            interface.master_kind = master->second.interface.kind;
        }
        interface.speed_bps = speed_of(socket.get(), interface.name);
        interface.numa_node = numa_node_of(interface);
        interfaces.push_back(std::move(interface));
    }
    return interfaces;
}

std::optional<std::uint64_t> bytes_sent_by(int interface_index) {
    Request request(RTM_GETLINK);
    request.header.nlmsg_flags = 0;  // this one only
    request.link.ifi_index = interface_index;
    std::optional<std::uint64_t> sent;
    const auto take = [&](unsigned short type, std::span<const std::byte> bytes) {
        if (type != IFLA_STATS64) return;
        rtnl_link_stats64 statistics{};
        std::memcpy(&statistics, bytes.data(), std::min(sizeof statistics, bytes.size()));
        sent = statistics.tx_bytes;
    };
    try {
        Netlink().ask(request.header, [&](const nlmsghdr& message) {
            if (message.nlmsg_type == RTM_NEWLINK) for_each_attribute<ifinfomsg>(message, take);
        });
    } catch (const Error&) {
        return std::nullopt;
    }
    return sent;
}

}  // namespace railmux::transports::tcp

#include "transports/tcp/interfaces.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <net/if_arp.h>

#include <array>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>

#include "transports/tcp/netlink.hpp"

namespace railmux::transports::tcp {

namespace {

template <typename Number>
Number read_number(const std::string& path, Number otherwise) {
    std::ifstream file(path);
    Number value{};
    return file >> value ? value : otherwise;
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
    result.kind = result.loopback ? "loopback" : info->ifi_type == ARPHRD_INFINIBAND ? "infiniband" : "ethernet";
    const auto* attributes = reinterpret_cast<const std::byte*>(info) + NLMSG_ALIGN(sizeof *info);
    for_each_attribute(attributes, message.nlmsg_len - NLMSG_LENGTH(sizeof *info), [&](auto type, auto bytes) {
        if (type == IFLA_IFNAME) result.name = text_of(bytes);
        if (type == IFLA_MASTER) link.master = number_of(bytes);
        if (type != IFLA_LINKINFO) return;
        for_each_attribute(bytes.data(), bytes.size(), [&](auto nested, auto value) {
            if (nested == IFLA_INFO_KIND) result.kind = text_of(value);
        });
    });
    return link;
}

void add_address(std::map<int, RawLink>& links, const nlmsghdr& message) {
    const auto* info = body_of<ifaddrmsg>(message);
    const auto link = links.find(static_cast<int>(info->ifa_index));
    if (link == links.end() || (info->ifa_family != AF_INET && info->ifa_family != AF_INET6)) return;
    InterfaceAddress address{.family = info->ifa_family, .prefix = info->ifa_prefixlen};
    address.link_local = info->ifa_family == AF_INET6 && info->ifa_scope == RT_SCOPE_LINK;
    bool local_seen = false;
    const auto* attributes = reinterpret_cast<const std::byte*>(info) + NLMSG_ALIGN(sizeof *info);
    for_each_attribute(attributes, message.nlmsg_len - NLMSG_LENGTH(sizeof *info), [&](auto type, auto bytes) {
        // On a point-to-point link IFA_ADDRESS is the other end; IFA_LOCAL, where it is given, is ours.
        if (type != IFA_LOCAL && (type != IFA_ADDRESS || local_seen)) return;
        local_seen = type == IFA_LOCAL;
        std::memcpy(&address.bytes, bytes.data(), std::min(sizeof address.bytes, bytes.size()));
    });
    link->second.interface.addresses.push_back(address);
}

}  // namespace

std::string InterfaceAddress::text() const {
    std::array<char, INET6_ADDRSTRLEN> text{};
    ::inet_ntop(family, &bytes, text.data(), text.size());
    return text.data();
}

std::string Interface::doubt() const {
    if (kind == "bridge") return "it is a bridge (of containers or virtual machines, usually)";
    if (master_kind == "bridge") return "it belongs to bridge " + master;
    if (!master.empty()) return "it belongs to " + master;
    for (const std::string_view doubtful : {"vxlan", "tun", "wireguard", "dummy", "ifb", "geneve", "gre", "gretap",
                                            "ipip", "sit", "ip6tnl", "vcan", "nlmon", "netdevsim"}) {
        if (kind == doubtful) return "it is of kind " + kind;
    }
    return {};
}

std::string Interface::obstacle() const {
    if (!up) return "it is down";
    if (!carrier && !loopback) return "it has no carrier";
    for (const auto& address : addresses) {
        if (!address.link_local) return {};
    }
    return addresses.empty() ? "it has no address" : "it has link-local addresses only";
}

std::vector<Interface> list_interfaces() {
    Netlink netlink;
    std::map<int, RawLink> links;
    Request link_request(RTM_GETLINK);
    netlink.ask(link_request.header, [&](const nlmsghdr& message) {
        if (message.nlmsg_type != RTM_NEWLINK) return;
        auto link = parse_link(message);
        links[link.interface.index] = std::move(link);
    });
    Request address_request(RTM_GETADDR);
    netlink.ask(address_request.header, [&](const nlmsghdr& message) {
        if (message.nlmsg_type == RTM_NEWADDR) add_address(links, message);
    });
    std::vector<Interface> interfaces;
    for (auto& [index, link] : links) {
        auto interface = link.interface;
        if (const auto master = links.find(link.master); link.master != 0 && master != links.end()) {
            interface.master = master->second.interface.name;
            interface.master_kind = master->second.interface.kind;
        }
        const auto sys = "/sys/class/net/" + interface.name;
        const auto mbit = read_number<std::int64_t>(sys + "/speed", 0);
        interface.speed_bps = mbit > 0 ? static_cast<std::uint64_t>(mbit) * 1'000'000 : 0;
        interface.numa_node = read_number(sys + "/device/numa_node", -1);
        interfaces.push_back(std::move(interface));
    }
    return interfaces;
}

std::uint64_t bytes_sent_by(const std::string& interface) {
    return read_number<std::uint64_t>("/sys/class/net/" + interface + "/statistics/tx_bytes", 0);
}

}  // namespace railmux::transports::tcp

#include "transports/verbs/ports.hpp"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "transports/verbs/fabric.hpp"

namespace railmux::transports::verbs {

namespace {

/// An address that an interface of this host has.
struct HostAddress {
    std::string interface;
    base::IpAddress address;
};

std::uint8_t prefix_of(const sockaddr* mask, int family) {
    if (mask == nullptr) return family == AF_INET ? 32 : 128;
    const auto* bytes =
        family == AF_INET ? reinterpret_cast<const std::uint8_t*>(&reinterpret_cast<const sockaddr_in*>(mask)->sin_addr)
                          : reinterpret_cast<const sockaddr_in6*>(mask)->sin6_addr.s6_addr;
    int bits = 0;
    for (int i = 0; i < (family == AF_INET ? 4 : 16); ++i) bits += std::popcount(bytes[i]);
    return static_cast<std::uint8_t>(bits);
}

std::vector<HostAddress> host_addresses() {
    std::vector<HostAddress> all;
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return all;
    const std::unique_ptr<ifaddrs, Destroy<::freeifaddrs>> owner(first);
    for (const auto* entry = first; entry != nullptr; entry = entry->ifa_next) {
        if (entry->ifa_addr == nullptr) continue;
        if (entry->ifa_addr->sa_family != AF_INET && entry->ifa_addr->sa_family != AF_INET6) continue;
        HostAddress found{entry->ifa_name, base::IpAddress::from_sockaddr(*entry->ifa_addr)};
        found.address.prefix = prefix_of(entry->ifa_netmask, found.address.family);
        all.push_back(std::move(found));
    }
    return all;
}

std::string read_line(const std::string& path) {
    std::string line;
    std::getline(std::ifstream(path) >> std::ws, line);
    return line;
}

/// The address that a GID of RoCE is made of.
base::IpAddress address_of(const ibv_gid& gid) {
    base::IpAddress address;
    in6_addr bytes;
    std::memcpy(&bytes, gid.raw, sizeof bytes);
    if (IN6_IS_ADDR_V4MAPPED(&bytes)) {
        std::memcpy(&address.bytes, gid.raw + 12, 4);
    } else {
        address.family = AF_INET6;
        address.bytes = bytes;
    }
    return address;
}

bool link_local(const base::IpAddress& address) {
    return address.family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&address.bytes);
}

/// The more the better; 0: of no use. The connection manager finds a GID by its address, and link-local addresses are on
/// every interface.
int rank(const ibv_gid_entry& entry) {
    const auto address = address_of(entry.gid);
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 || link_local(address)) return 0;
    return address.family == AF_INET ? 2 : 1;
}

std::string describe(const ibv_gid_entry& entry) {
    const auto address = address_of(entry.gid);
    const auto* type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "RoCE v1";
    const auto* family = address.family == AF_INET ? "IPv4" : link_local(address) ? "link-local IPv6" : "IPv6";
    return fmt::format("{} over {}", type, family);
}

std::vector<ibv_gid_entry> gids_of(ibv_context* device, std::uint32_t port) {
    std::vector<ibv_gid_entry> all(512);
    const auto count = ibv_query_gid_table(device, all.data(), all.size(), 0);
    all.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    std::erase_if(all, [&](const ibv_gid_entry& entry) { return entry.port_num != port; });
    return all;
}

void set_prefix(Port& port, const std::vector<HostAddress>& addresses) {
    for (const auto& [interface, address] : addresses) {
        if (!address.same_address(port.address)) {
            continue;
        }
        port.address.prefix = address.prefix;
        port.interface = interface;
        return;
    }
    port.obstacle = fmt::format("GID {} stands for {}, which no interface has", port.gid, port.address.text());
}

void choose_roce_gid(ibv_context* device, Port& port, const std::vector<HostAddress>& addresses) {
    port.kind = "RoCE v2";
    const auto gids = gids_of(device, port.number);
    const auto best =
        std::max_element(gids.begin(), gids.end(), [](const auto& a, const auto& b) { return rank(a) < rank(b); });
    if (best == gids.end() || rank(*best) == 0) {
        port.obstacle = gids.empty() ? "it has no GID" : "none of its GIDs is of RoCE v2 over an IP address";
        port.cure = "give its network interface an IP address (ip address add)";
        return;
    }
    port.gid = best->gid_index;
    port.address = address_of(best->gid);
    set_prefix(port, addresses);
    std::vector<std::string> others;
    for (const auto& entry : gids) {
        if (entry.gid_index != port.gid) others.push_back(fmt::format("{} {}", entry.gid_index, describe(entry)));
    }
    port.choice =
        fmt::format("GID {}: {}{}", port.gid, describe(*best), others.empty() ? "" : ", before " + base::join(others));
}

/// An InfiniBand port is known to the connection manager by the IP address of its IPoIB interface, whose hardware address
/// ends in the port's GID.
void choose_ipoib_address(ibv_context* device, Port& port, const std::vector<HostAddress>& addresses) {
    port.kind = "InfiniBand";
    ibv_gid gid{};
    if (ibv_query_gid(device, port.number, 0, &gid) != 0) {
        port.obstacle = "its GID cannot be read";
        return;
    }
    const auto wanted = base::to_hex(std::as_bytes(std::span(gid.raw).last(8)));
    for (const auto& [interface, address] : addresses) {
        auto hardware = read_line("/sys/class/net/" + interface + "/address");
        std::erase(hardware, ':');
        if (hardware.size() != 40 || !hardware.ends_with(wanted) || link_local(address)) continue;
        port.interface = interface;
        port.address = address;
        port.choice = fmt::format("GID 0, by the address of {}", interface);
        return;
    }
    port.obstacle = "no IPoIB interface with an IP address belongs to it";
    port.cure = "load ib_ipoib and give its interface an IP address";
}

std::uint64_t speed_of(const ibv_port_attr& port) {
    // Per lane in Mbit/s by active_speed, and lanes by active_width, both sets of bits (InfiniBand specification, 14.2.5.6).
    constexpr std::array<std::uint64_t, 8> lane{2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000};
    constexpr std::array<std::uint64_t, 5> lanes{1, 4, 8, 12, 2};
    if (port.active_speed == 0 || port.active_width == 0) return 0;
    const auto speed = static_cast<std::size_t>(std::countr_zero(port.active_speed));
    const auto width = static_cast<std::size_t>(std::countr_zero(port.active_width));
    return speed < lane.size() && width < lanes.size() ? lane[speed] * lanes[width] * 1'000'000 : 0;
}

void judge_state(Port& port, ibv_port_state state) {
    if (state == IBV_PORT_ACTIVE) return;
    port.obstacle = fmt::format("the port is {}", ibv_port_state_str(state));
    port.cure = "check its cable, and `ip link` or the subnet manager";
}

Port examine(ibv_context* device, const std::string& name, std::uint8_t number,
             const std::vector<HostAddress>& addresses) {
    Port port{.device = name, .number = number};
    const auto node = read_line("/sys/class/infiniband/" + name + "/device/numa_node");
    port.numa_node = node.empty() ? -1 : std::atoi(node.c_str());
    ibv_port_attr attributes{};
    if (ibv_query_port(device, number, &attributes) != 0) {
        port.obstacle = "its state cannot be read";
        return port;
    }
    port.speed_bps = speed_of(attributes);
    if (device->device->transport_type == IBV_TRANSPORT_IWARP) {
        port.kind = "iWARP";
        port.obstacle = "iWARP has no immediate data, which frames need";
        return port;
    }
    if (attributes.link_layer == IBV_LINK_LAYER_ETHERNET) {
        choose_roce_gid(device, port, addresses);
    } else {
        choose_ipoib_address(device, port, addresses);
    }
    judge_state(port, attributes.state);
    return port;
}

}  // namespace

std::vector<Port> list_ports() {
    stay_whole_in_forks();
    int count = 0;
    ibv_device** devices = ibv_get_device_list(&count);
    if (devices == nullptr && errno == ENOSYS) return {};  // a kernel without RDMA
    if (devices == nullptr) throw failure("verbs", "no devices can be listed", errno);
    std::vector<std::string> names;
    names.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) names.emplace_back(ibv_get_device_name(devices[i]));
    ibv_free_device_list(devices);
    std::ranges::sort(names);

    const auto addresses = host_addresses();
    std::vector<Port> all;
    for (const auto& name : names) {
        try {
            const auto device = open_device(name);
            ibv_device_attr attributes{};
            static_cast<void>(ibv_query_device(device.get(), &attributes));
            for (std::uint8_t port = 1; port <= attributes.phys_port_cnt; ++port) {
                all.push_back(examine(device.get(), name, port, addresses));
            }
        } catch (const Error& error) {
            all.push_back({.device = name, .obstacle = error.what(), .cure = error.cure()});
        }
    }
    return all;
}

Port look_again(ibv_context* device, const Port& before) {
    // An InfiniBand port has its GID for life, and nobody tells what becomes of the address of its IPoIB interface.
    const auto gids = gids_of(device, before.number);
    const bool has_gid = before.kind == "InfiniBand" || std::ranges::any_of(gids, [&](const ibv_gid_entry& entry) {
                             return entry.gid_index == before.gid && entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
                                    address_of(entry.gid).same_address(before.address);
                         });
    if (!has_gid) return examine(device, before.device, before.number, host_addresses());
    Port port = before;
    port.obstacle.clear();
    ibv_port_attr attributes{};
    if (ibv_query_port(device, port.number, &attributes) != 0) attributes.state = IBV_PORT_NOP;
    judge_state(port, attributes.state);
    return port;
}

bool works(ibv_context* device, const Port& port) {
    ibv_port_attr attributes{};
    if (ibv_query_port(device, port.number, &attributes) != 0 || attributes.state != IBV_PORT_ACTIVE) return false;
    const auto flags = read_line("/sys/class/net/" + port.interface + "/flags");
    return flags.empty() || (std::strtoul(flags.c_str(), nullptr, 16) & IFF_UP) != 0;
}

bool same_gid(const Port& a, const Port& b) noexcept { return a.gid == b.gid && a.address.same_address(b.address); }

}  // namespace railmux::transports::verbs

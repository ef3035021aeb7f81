#include "transports/tcp/route.hpp"

#include <fmt/format.h>
#include <net/if.h>

#include <array>
#include <cstring>

#include "transports/tcp/netlink.hpp"

namespace railmux::transports::tcp {

namespace {

struct Route {
    int interface = 0;  // 0: none
    bool local = false;
};

struct RouteRequest {
    nlmsghdr header{};
    rtmsg route{};
    std::array<std::byte, 64> attributes{};

    void add(unsigned short type, const in6_addr& address, std::size_t size) {
        const rtattr attribute{static_cast<unsigned short>(RTA_LENGTH(size)), type};
        auto* at = attributes.data() + used_;
        std::memcpy(at, &attribute, sizeof attribute);
        std::memcpy(at + RTA_LENGTH(0), &address, size);
        used_ += RTA_SPACE(size);
        header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof(rtmsg)) + used_);
    }

private:
    std::size_t used_ = 0;
};

/// Throws Error(system).
Route find_route(const base::IpAddress& source, const base::IpAddress& to) {
    const std::size_t size = to.family == AF_INET ? 4 : 16;
    RouteRequest request;
    request.header.nlmsg_type = RTM_GETROUTE;
    request.route.rtm_family = static_cast<unsigned char>(to.family);
    request.route.rtm_dst_len = static_cast<unsigned char>(size * 8);
    request.route.rtm_src_len = static_cast<unsigned char>(size * 8);
    request.add(RTA_DST, to.bytes, size);
    request.add(RTA_SRC, source.bytes, size);
    Route found;
    Netlink().ask(request.header, [&](const nlmsghdr& message) {
        if (message.nlmsg_type != RTM_NEWROUTE) return;
        const auto kind = body_of<rtmsg>(message)->rtm_type;
        if (kind != RTN_UNICAST && kind != RTN_LOCAL) return;  // unreachable, prohibit, blackhole
        found.local = kind == RTN_LOCAL;
        for_each_attribute<rtmsg>(message, [&](auto type, auto bytes) {
            if (type != RTA_OIF || bytes.size() < sizeof found.interface) return;
            std::memcpy(&found.interface, bytes.data(), sizeof found.interface);
        });
    });
    return found;
}

std::string interface_name(int index) {
    std::array<char, IF_NAMESIZE> name{};
    return ::if_indextoname(static_cast<unsigned>(index), name.data()) != nullptr ? name.data() : "another interface";
}

std::string detour(const base::IpAddress& ours, const std::string& destination, const Route& route) {
    return fmt::format("packets from {} to {} leave by {}", ours.text(), destination, interface_name(route.interface));
}

Reachability judge_route(const LocalEnd& here, const base::IpAddress& ours, const base::IpAddress& theirs) {
    const bool near = ours.same_network(theirs);
    Route route;
    try {
        route = find_route(ours, theirs);
    } catch (const Error& error) {
        return {Reach::never, error.what()};
    }
    if (route.interface == here.interface_index) {
        if (near) return {Reach::direct, "same subnet " + ours.network()};
        return {Reach::routed, "a route over " + here.interface};
    }
    if (route.interface == 0) return {Reach::never, fmt::format("no route from {} to {}", ours.text(), theirs.text())};
    if (route.local) return {Reach::never, theirs.text() + " is an address of this host, too"};
    auto why = detour(ours, theirs.text(), route);
    if (!near) return {Reach::never, std::move(why)};
    return {Reach::never, std::move(why), same_subnet_cure(ours, here.interface, here.interface_index)};
}

std::string families_of(const RailAddress& address) {
    bool v4 = false, v6 = false;
    for (const auto& endpoint : address.endpoints) (endpoint.at.family == AF_INET ? v4 : v6) = true;
    return v4 && v6 ? "IPv4 and IPv6" : v4 ? "IPv4" : v6 ? "IPv6" : "none";
}

Reachability judge_pair(const LocalEnd& here, const RailAddress& there, const base::IpAddress& ours,
                        const base::IpAddress& theirs) {
    const bool same_host = here.address.host == there.host;
    if (here.address.loopback && there.loopback && same_host) {
        // Several loopback addresses stand for several networks: equal ones belong together.
        if (ours.same_address(theirs)) return {Reach::direct, "loopback of this host"};
        return {Reach::routed, "another loopback address of this host"};
    }
    if (here.address.loopback || there.loopback) return {Reach::never, "loopback does not leave the host"};
    if (same_host) return {Reach::fallback, "the same host"};
    return judge_route(here, ours, theirs);
}

}  // namespace

Path best_path(const LocalEnd& here, const RailAddress& there) {
    Path best;
    for (const auto& ours : here.address.endpoints) {
        for (const auto& theirs : there.endpoints) {
            if (ours.at.family != theirs.at.family) continue;
            auto how = judge_pair(here, there, ours.at, theirs.at);
            if (best.found && how.reach <= best.how.reach) continue;
            best = {std::move(how), true, ours, theirs};
        }
    }
    if (!best.found) {
        best.how = {Reach::never, fmt::format("no address family in common: {} here, {} there",
                                              families_of(here.address), families_of(there))};
    }
    return best;
}

Reachability judge_subnet(const base::IpAddress& ours, const std::string& interface, int interface_index) {
    constexpr int tries = 16;  // the first ones may be the network's own, or this host's
    auto theirs = ours.masked();
    auto& last = theirs.bytes.s6_addr[ours.family == AF_INET ? 3 : 15];
    for (int i = 0; i < tries && ours.same_network(theirs); ++i, ++last) {
        Route route;
        try {
            route = find_route(ours, theirs);
        } catch (const Error&) {
            break;  // nobody knows; connecting will show
        }
        if (route.interface == 0 || route.local) continue;
        if (route.interface == interface_index) break;
        return {Reach::never, detour(ours, ours.network(), route), same_subnet_cure(ours, interface, interface_index)};
    }
    return {Reach::direct, "same subnet " + ours.network()};
}

bool leaves_elsewhere(const base::IpAddress& from, const base::IpAddress& to, int interface_index) {
    try {
        const auto route = find_route(from, to);
        return !route.local && route.interface != 0 && route.interface != interface_index;
    } catch (const Error&) {
        return false;
    }
}

bool stays_on_host(const base::IpAddress& from, const base::IpAddress& to) {
    try {
        return find_route(from, to).local;
    } catch (const Error&) {
        return true;  // nobody knows; then its bytes are not looked for at the interface
    }
}

std::string same_subnet_cure(const base::IpAddress& source, const std::string& interface, int interface_index) {
    const bool v4 = source.family == AF_INET;
    // Tables above 100 are nobody's; each interface has its own.
    return fmt::format("ip {0}rule add from {1} table {2}; ip {0}route add {3} dev {4} src {1} table {2}{5}",
                       v4 ? "" : "-6 ", source.text(), 100 + interface_index, source.network(), interface,
                       v4 ? "; sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2" : "");
}

}  // namespace railmux::transports::tcp

#include "transports/tcp/transport.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/selector.hpp"
#include "base/text.hpp"
#include "transports/tcp/rail.hpp"

namespace railmux::transports::tcp {

namespace {

constexpr std::string_view prefix = "tcp:";

bool family_allowed(const std::string& families, int family) {
    return families == "any" || families == (family == AF_INET ? "ipv4" : "ipv6");
}

/// Loopback addresses named one by one in the selector: each makes a rail of its own, which is how several rails can be
/// had on a machine with neither a second network nor the right to make one.
std::vector<std::string> loopback_aliases(const Config& config) {
    std::vector<std::string> aliases;
    const auto selector = config.text("tcp.interfaces");
    for (const auto item : base::split(selector, ',')) {
        const std::string text(base::trim(item));
        in_addr address{};
        if (::inet_pton(AF_INET, text.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == 127 &&
            text != "127.0.0.1") {
            aliases.push_back(text);
        }
    }
    return aliases;
}

class TcpTransport final : public Transport {
public:
    explicit TcpTransport(const Services& services)
        : services_(services),
          rails_(base::Selector::parse(services.config.text("rails"))),
          interfaces_(base::Selector::parse(services.config.text("tcp.interfaces"))) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "tcp"; }
    [[nodiscard]] std::vector<RailInfo> scan() override;
    [[nodiscard]] std::unique_ptr<transports::Rail> open(const RailInfo& device) override;

private:
    [[nodiscard]] RailInfo describe(const Interface& interface) const;
    void judge(const Interface& interface, RailInfo& info) const;
    void refuse_unknown_names(const std::vector<Interface>& interfaces) const;

    Services services_;
    base::Selector rails_;
    base::Selector interfaces_;
};

std::vector<RailInfo> TcpTransport::scan() {
    const auto interfaces = list_interfaces();
    refuse_unknown_names(interfaces);
    std::vector<RailInfo> devices;
    for (const auto& interface : interfaces) {
        devices.push_back(describe(interface));
        if (!interface.loopback || !interface.up) continue;
        for (const auto& alias : loopback_aliases(services_.config)) {
            auto info = devices.back();
            info.name = std::string(prefix) + alias;
            info.device = alias;
            info.addresses = {alias + "/8"};
            info.usable = true;
            info.reason.clear();
            info.cure.clear();
            devices.push_back(std::move(info));
        }
    }
    return devices;
}

RailInfo TcpTransport::describe(const Interface& interface) const {
    RailInfo info;
    info.name = std::string(prefix) + interface.name;
    info.transport = "tcp";
    info.device = interface.name;
    info.kind = interface.kind;
    info.speed_bps = interface.speed_bps;
    info.numa_node = interface.numa_node;
    for (const auto& address : interface.addresses) {
        info.addresses.push_back(fmt::format("{}/{}", address.text(), address.prefix));
    }
    judge(interface, info);
    return info;
}

void TcpTransport::judge(const Interface& interface, RailInfo& info) const {
    using Match = base::Selector::Match;
    const std::vector<std::string> names{info.name, info.device};
    const auto by_rails = rails_.match(names, info.addresses);
    const auto by_interfaces = interfaces_.match(names, info.addresses);
    const auto families = services_.config.text("tcp.families");
    const bool family_left = std::any_of(interface.addresses.begin(), interface.addresses.end(), [&](const auto& a) {
        return !a.link_local && family_allowed(families, a.family);
    });
    if (by_rails == Match::excluded || by_rails == Match::unlisted) {
        info.reason = "not selected by rails";
    } else if (by_interfaces == Match::excluded || by_interfaces == Match::unlisted) {
        info.reason = "not selected by tcp.interfaces";
    } else if (const auto obstacle = interface.obstacle(); !obstacle.empty()) {
        info.reason = obstacle;
    } else if (!family_left) {
        info.reason = "it has no address of the families " + families;
        info.cure = "set tcp.families (RAILMUX_TCP_FAMILIES) to any";
    } else if (const auto doubt = interface.doubt(); !doubt.empty() && by_rails != Match::included_explicitly &&
                                                     by_interfaces != Match::included_explicitly) {
        info.reason = "off by default: " + doubt;
        info.cure = fmt::format("name it to use it: RAILMUX_TCP_INTERFACES=all,{}", interface.name);
    } else {
        info.usable = true;
    }
}

void TcpTransport::refuse_unknown_names(const std::vector<Interface>& interfaces) const {
    std::vector<std::string> known = loopback_aliases(services_.config);
    std::vector<std::string> names;
    for (const auto& interface : interfaces) {
        names.push_back(interface.name);
        known.push_back(interface.name);
        known.push_back(std::string(prefix) + interface.name);
        for (const auto& address : interface.addresses) known.push_back(address.text());
    }
    const auto unknown = interfaces_.unmatched(known);
    if (unknown.empty()) return;
    throw Error(ErrorCode::invalid_config,
                fmt::format("tcp.interfaces names {}, which this host does not have{}", base::join(unknown),
                            base::did_you_mean(unknown.front(), names)),
                "this host has " + base::join(names));
}

std::unique_ptr<transports::Rail> TcpTransport::open(const RailInfo& device) {
    const auto options = SocketOptions::read(services_.config);
    const auto families = services_.config.text("tcp.families");
    for (const auto& interface : list_interfaces()) {
        const bool alias = interface.loopback && device.device.starts_with("127.");
        if (interface.name != device.device && !alias) continue;
        std::vector<Endpoint> endpoints;
        if (alias) {
            Endpoint endpoint{.prefix = 8};
            ::inet_pton(AF_INET, device.device.c_str(), &endpoint.bytes);
            endpoints.push_back(endpoint);
        }
        for (const auto& address : interface.addresses) {
            const bool have = std::any_of(endpoints.begin(), endpoints.end(),
                                          [&](const Endpoint& e) { return e.family == address.family; });
            if (alias || have || address.link_local || !family_allowed(families, address.family)) continue;
            endpoints.push_back(
                {.family = address.family, .prefix = address.prefix, .port = 0, .bytes = address.bytes});
        }
        return std::make_unique<Rail>(device.name, interface, std::move(endpoints), options, services_.log);
    }
    throw Error(ErrorCode::no_rails, "interface " + device.device + " has vanished");
}

}  // namespace

std::unique_ptr<Transport> make_transport(const Services& services) { return std::make_unique<TcpTransport>(services); }

}  // namespace railmux::transports::tcp

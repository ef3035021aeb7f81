#include "transports/tcp/transport.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/selector.hpp"
#include "base/text.hpp"
#include "transports/tcp/rail.hpp"
#include "transports/tcp/route.hpp"

namespace railmux::transports::tcp {

namespace {

constexpr std::string_view prefix = "tcp:";
constexpr auto no_key = "tcp.encryption is on, and there is no job key to encrypt by";
constexpr auto key_cure =
    "set RAILMUX_JOB_KEY for all processes (`openssl rand -hex 16` makes one), or start them by `railmux run`";
using Match = base::Selector::Match;

/// What could be a rail: an interface, or one loopback address of several.
struct Device {
    std::string name;  // without "tcp:"
    Interface interface;

    [[nodiscard]] std::vector<std::string> names() const { return {std::string(prefix) + name, name}; }
    [[nodiscard]] std::vector<std::string> addresses() const {
        std::vector<std::string> texts;
        for (const auto& a : interface.addresses) texts.push_back(fmt::format("{}/{}", a.at.text(), a.at.prefix));
        return texts;
    }
};

/// Loopback addresses named one by one in the selector: each makes a rail of its own, which is how several rails can be
/// had on a machine with neither a second network nor the right to make one.
std::vector<InterfaceAddress> loopback_aliases(const std::string& selector) {
    std::vector<InterfaceAddress> aliases;
    for (const auto item : base::split(selector, ',')) {
        const std::string text(base::trim(item));
        InterfaceAddress address{{.prefix = 8}};
        if (::inet_pton(AF_INET, text.c_str(), &address.at.bytes) != 1 || address.at.bytes.s6_addr[0] != 127) continue;
        if (text != "127.0.0.1") aliases.push_back(address);  // that one is the interface itself
    }
    return aliases;
}

class TcpTransport final : public Transport {
public:
    explicit TcpTransport(const Services& services)
        : log_(services.log),
          options_(SocketOptions::read(services.config)),
          encrypt_(services.config.flag("tcp.encryption")),
          survey_(services.survey),
          families_(services.config.text("tcp.families")),
          rails_(base::Selector::parse(services.config.text("rails"))),
          interfaces_(base::Selector::parse(services.config.text("tcp.interfaces"))),
          aliases_(loopback_aliases(services.config.text("tcp.interfaces"))) {
        if (const auto key = services.config.text("job.key"); encrypt_ && !key.empty())
            encryption_ = std::make_unique<TlsContext>(key);
    }

    [[nodiscard]] std::string_view name() const noexcept override { return "tcp"; }
    [[nodiscard]] std::vector<RailInfo> scan() override;
    [[nodiscard]] std::unique_ptr<transports::Rail> open(const RailInfo& device) override;

private:
    [[nodiscard]] std::vector<Device> devices() const;
    [[nodiscard]] RailInfo describe(const Device& device) const;
    void judge(const Device& device, RailInfo& info) const;
    void foresee_merging(const Interface& interface, RailInfo& info) const;
    void refuse_unknown_names(const std::vector<Device>& devices) const;
    [[nodiscard]] bool allowed(const InterfaceAddress& address) const;
    [[nodiscard]] int preference(const InterfaceAddress& address) const;
    [[nodiscard]] std::vector<Endpoint> endpoints_of(const Interface& interface) const;
    [[nodiscard]] std::optional<Netlink> news_of_interfaces();
    [[nodiscard]] bool missed(const std::vector<Device>& now);

    base::Logger& log_;
    SocketOptions options_;
    bool encrypt_;
    bool survey_;
    std::unique_ptr<TlsContext> encryption_;  // if there is to be any, and a key for it
    std::string families_;
    base::Selector rails_;
    base::Selector interfaces_;
    std::vector<InterfaceAddress> aliases_;
    bool told_no_news_ = false;
    // By name, of the last scan, until there is somebody who hears of what comes later.
    std::optional<std::vector<std::string>> scanned_;
};

std::vector<Device> TcpTransport::devices() const {
    std::vector<Device> all;
    for (auto& interface : list_interfaces()) {
        all.push_back({interface.name, std::move(interface)});
        if (!all.back().interface.loopback) continue;
        const auto loopback = all.back().interface;
        for (const auto& alias : aliases_) {
            all.push_back({alias.at.text(), loopback});
            all.back().interface.addresses = {alias};
            all.back().interface.by_processors = false;
        }
    }
    return all;
}

std::vector<RailInfo> TcpTransport::scan() {
    if (encrypt_ && !encryption_ && !survey_) throw Error(ErrorCode::invalid_config, no_key, key_cure);
    std::vector<Device> all;
    try {
        all = devices();
    } catch (const Error& error) {
        RailInfo none;
        none.name = none.transport = none.device = "tcp";
        none.reason = error.what();
        return {none};
    }
    refuse_unknown_names(all);
    std::vector<RailInfo> infos;
    infos.reserve(all.size());
    for (const auto& device : all) infos.push_back(describe(device));
    scanned_.emplace();
    for (const auto& info : infos) {
        if (info.usable) scanned_->push_back(info.device);
    }
    return infos;
}

RailInfo TcpTransport::describe(const Device& device) const {
    RailInfo info;
    info.name = std::string(prefix) + device.name;
    info.transport = "tcp";
    info.device = device.name;
    info.kind = device.interface.kind;
    info.speed_bps = device.interface.speed_bps;
    info.numa_node = device.interface.numa_node;
    info.addresses = device.addresses();
    info.by_processors = device.interface.by_processors;
    judge(device, info);
    return info;
}

void TcpTransport::judge(const Device& device, RailInfo& info) const {
    const auto& interface = device.interface;
    const auto by_rails = rails_.match(device.names(), info.addresses);
    const auto by_interfaces = interfaces_.match(device.names(), info.addresses);
    const bool named = by_rails == Match::included_explicitly || by_interfaces == Match::included_explicitly;
    const auto doubt = interface.doubt();
    if (by_rails == Match::excluded || by_rails == Match::unlisted) {
        info.reason = "not selected by rails";
    } else if (by_interfaces == Match::excluded || by_interfaces == Match::unlisted) {
        info.reason = "not selected by tcp.interfaces";
    } else if (!doubt.empty() && !named) {
        info.reason = "off by default: " + doubt;
        info.cure = fmt::format("name it to use it: RAILMUX_TCP_INTERFACES=all,{}", device.name);
    } else if (const auto obstacle = interface.obstacle(); !obstacle.empty()) {
        info.reason = obstacle;
    } else if (endpoints_of(interface).empty()) {
        info.reason = "it has no address of the families " + families_;
        info.cure = "set tcp.families (RAILMUX_TCP_FAMILIES) to any";
    } else if (encrypt_ && !encryption_) {
        info.reason = no_key;
        info.cure = key_cure;
    } else {
        info.usable = true;
        if (!interface.loopback) foresee_merging(interface, info);
        if (encrypt_) info.reason = info.reason.empty() ? "encrypted" : "encrypted; " + info.reason;
    }
}

/// A rail whose packets leave by another interface is merged with that one's rail when it connects (Connector::tell_cure):
/// who looks before that is told the same.
void TcpTransport::foresee_merging(const Interface& interface, RailInfo& info) const {
    for (const auto& endpoint : endpoints_of(interface)) {
        const auto judged = judge_subnet(endpoint.at, interface.name, interface.index);
        if (judged.reach != Reach::never) continue;
        info.reason += (info.reason.empty() ? "to be merged with another: " : ", ") + judged.why;
        info.cure += (info.cure.empty() ? "" : "; ") + judged.cure;
    }
}

void TcpTransport::refuse_unknown_names(const std::vector<Device>& devices) const {
    std::vector<std::string> known;
    std::vector<std::string> names;
    for (const auto& device : devices) {
        names.push_back(device.name);
        for (auto& text : device.names()) known.push_back(std::move(text));
        for (const auto& address : device.interface.addresses) known.push_back(address.at.text());
    }
    const auto unknown = interfaces_.unmatched(known);
    if (unknown.empty()) return;
    throw Error(ErrorCode::invalid_config,
                fmt::format("tcp.interfaces names {}, which this host does not have{}", base::join(unknown),
                            base::did_you_mean(unknown.front(), names)),
                "this host has " + base::join(names));
}

bool TcpTransport::allowed(const InterfaceAddress& address) const {
    const bool family = families_ == "any" || families_ == (address.at.family == AF_INET ? "ipv4" : "ipv6");
    return family && address.usable();
}

int TcpTransport::preference(const InterfaceAddress& address) const {
    const std::array text{address.at.text()};
    const bool named = interfaces_.match({}, text) == Match::included_explicitly ||
                       rails_.match({}, text) == Match::included_explicitly;
    return (named ? 2 : 0) + (address.second_choice ? 0 : 1);
}

/// One of each family: where a rail listens and connects from.
std::vector<Endpoint> TcpTransport::endpoints_of(const Interface& interface) const {
    std::vector<Endpoint> endpoints;
    for (const int family : {AF_INET, AF_INET6}) {
        const InterfaceAddress* best = nullptr;
        for (const auto& address : interface.addresses) {
            if (address.at.family != family || !allowed(address)) continue;
            if (best == nullptr || preference(address) > preference(*best)) best = &address;
        }
        if (best != nullptr) endpoints.push_back({best->at});
    }
    return endpoints;
}

/// One socket a rail, in the set that the rail waits on: four rails hear of the same news four times, and share nothing.
std::optional<Netlink> TcpTransport::news_of_interfaces() {
    try {
        return Netlink(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
    } catch (const Error& error) {
        if (!std::exchange(told_no_news_, true)) {
            log_.warning("{}: that one goes down or comes back is noticed by silence, and by trying, only",
                         error.what());
        }
        return std::nullopt;
    }
}

/// Whether one of these can be used, and could not at the scan: between that and the first rail's socket nobody heard of it.
bool TcpTransport::missed(const std::vector<Device>& now) {
    const auto scanned = std::exchange(scanned_, {});
    return scanned && std::ranges::any_of(now, [&](const Device& device) {
               return std::ranges::find(*scanned, device.name) == scanned->end() && describe(device).usable;
           });
}

std::unique_ptr<transports::Rail> TcpTransport::open(const RailInfo& device) {
    auto news = news_of_interfaces();  // first: what changes after these have been listed is heard of
    const auto all = devices();
    for (const auto& [name, interface] : all) {
        if (name != device.device) continue;
        if (endpoints_of(interface).empty())
            throw Error(ErrorCode::no_rails, "interface " + name + " has no address left",
                        "give it one, or leave it out of RAILMUX_TCP_INTERFACES");
        // The transport outlives its rails.
        const auto choose = [this](const Interface& now) { return endpoints_of(now); };
        const bool hears = news.has_value();
        auto rail =
            std::make_unique<Rail>(device.name, interface, choose, options_, encryption_.get(), std::move(news), log_);
        if (hears && missed(all)) rail->tell_of_devices();
        return rail;
    }
    throw Error(ErrorCode::no_rails, "interface " + device.device + " has vanished",
                "it went away after it was listed: see `railmux info`");
}

}  // namespace

std::unique_ptr<Transport> make_transport(const Services& services) { return std::make_unique<TcpTransport>(services); }

}  // namespace railmux::transports::tcp

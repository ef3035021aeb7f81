#include "transports/verbs/transport.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/selector.hpp"
#include "transports/plain_text.hpp"
#include "transports/verbs/rail.hpp"

namespace railmux::transports::verbs {

namespace {

class VerbsTransport final : public Transport {
public:
    explicit VerbsTransport(const Services& services)
        : log_(services.log),
          rails_(base::Selector::parse(services.config.text("rails"))),
          bulk_(services.config.text("verbs.bulk")),
          encrypt_(services.config.flag("tcp.encryption")) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "verbs"; }
    [[nodiscard]] std::vector<RailInfo> scan() override;
    [[nodiscard]] std::unique_ptr<transports::Rail> open(const RailInfo& device) override;

private:
    [[nodiscard]] RailInfo describe(const Port& port) const;

    base::Logger& log_;
    base::Selector rails_;
    std::string bulk_;
    bool encrypt_;  // what can be
};

RailInfo nothing(std::string reason, std::string cure) {
    RailInfo none;
    none.name = none.transport = none.device = "verbs";
    none.reason = std::move(reason);
    none.cure = std::move(cure);
    return none;
}

std::vector<RailInfo> VerbsTransport::scan() {
    std::vector<RailInfo> infos;
    try {
        for (const auto& port : list_ports()) infos.push_back(describe(port));
    } catch (const Error& error) {
        return {nothing(error.what(), {})};
    }
    if (infos.empty()) return {nothing("this host has no RDMA device", {})};
    return infos;
}

RailInfo VerbsTransport::describe(const Port& port) const {
    RailInfo info;
    info.name = "verbs:" + port.name();
    info.transport = "verbs";
    info.device = port.name();
    info.kind = port.kind;
    info.speed_bps = port.speed_bps;
    info.numa_node = port.numa_node;
    if (!port.interface.empty()) info.addresses = {fmt::format("{}/{}", port.address.text(), port.address.prefix)};
    const std::vector<std::string> names{info.name, info.device};
    const auto match = rails_.match(names, info.addresses);
    if (match == base::Selector::Match::excluded || match == base::Selector::Match::unlisted) {
        info.reason = "not selected by rails";
    } else if (!port.obstacle.empty()) {
        info.reason = port.obstacle;
        info.cure = port.cure;
    } else if (encrypt_ && match != base::Selector::Match::included_explicitly) {
        info.reason = plain_text_doubt;
        info.cure = fmt::format("name it to use it: RAILMUX_RAILS=all,{}", info.name);
    } else {
        info.usable = true;
        info.reason = port.choice;
    }
    return info;
}

std::unique_ptr<transports::Rail> VerbsTransport::open(const RailInfo& device) {
    const auto ports = list_ports();
    const auto port = std::ranges::find(ports, device.device, &Port::name);
    if (port == ports.end())
        throw Error(ErrorCode::no_rails, "port " + device.device + " has vanished",
                    "it went away after it was listed: see `railmux info`");
    if (!port->obstacle.empty()) throw Error(ErrorCode::no_rails, port->obstacle, port->cure);
    return std::make_unique<Rail>(*port, bulk_, log_);
}

}  // namespace

std::unique_ptr<Transport> make_transport(const Services& services) {
    return std::make_unique<VerbsTransport>(services);
}

}  // namespace railmux::transports::verbs

#include "transports/sim/fabric.hpp"

#include "transports/sim/core.hpp"
#include "transports/sim/rail.hpp"

namespace railmux::transports::sim {

Fabric::Fabric(std::uint64_t seed) : core_(std::make_unique<Core>(seed)) {}
Fabric::~Fabric() = default;

base::Nanoseconds Fabric::now() const noexcept { return core_->now(); }
void Fabric::advance(base::Nanoseconds by) { core_->advance_to(core_->now() + by); }
void Fabric::advance_to(base::Nanoseconds time) { core_->advance_to(time); }
std::optional<base::Nanoseconds> Fabric::next_event() const noexcept { return core_->next_event(); }

bool Fabric::advance_to_next_event() {
    const auto next = core_->next_event();
    if (next) core_->advance_to(*next);
    return next.has_value();
}

base::Nanoseconds Fabric::cpu_free(std::string_view host) const noexcept {
    const auto* found = core_->find_host(host);
    return found == nullptr ? 0 : to_ns(found->cpu_free);
}

void Fabric::add_rail(std::string_view host, const RailOptions& options) {
    const auto added = core_->add(host, options);
    for (const auto& device : core_->devices()) {
        if (device.rail != nullptr && device.host == core_->device(added).host) device.rail->tell_of_devices();
    }
}

std::unique_ptr<Rail> Fabric::open(std::string_view host, std::string_view device) {
    const auto number = core_->find(std::string(host) + "/" + std::string(device));
    const auto& found = core_->device(number);
    if (found.rail != nullptr) throw Error(ErrorCode::invalid_argument, "rail " + found.name + " is open already");
    if (found.down) throw Error(ErrorCode::system, "rail " + found.name + " is down: " + found.cause);
    return std::make_unique<SimRail>(*core_, number);
}

std::unique_ptr<Rail> Fabric::open(std::string_view host, const RailOptions& options) {
    return std::make_unique<SimRail>(*core_, core_->add(host, options));
}

std::vector<RailInfo> Fabric::scan(std::string_view host) const {
    std::vector<RailInfo> found;
    for (const auto& device : core_->devices()) {
        if (device.name != std::string(host) + "/" + device.options.device) continue;
        RailInfo info;
        info.name = "sim:" + device.options.device;
        info.transport = "sim";
        info.device = device.options.device;
        info.usable = !device.down;
        if (device.down) info.reason = "down: " + device.cause;
        info.speed_bps = device.options.speed_bps;
        info.numa_node = device.options.numa_node;
        info.kind = "simulated";
        info.addresses = {device.options.network};
        found.push_back(std::move(info));
    }
    return found;
}

void Fabric::set_timing(std::string_view rail, const Timing& timing) {
    core_->device(core_->find(rail)).options.timing = timing;
}

void Fabric::set_timing(std::string_view from, std::string_view to, const Timing& timing) {
    core_->device(core_->find(from)).towards[core_->find(to)] = timing;
}

void Fabric::cut(std::string_view rail, std::string_view other, Cut how) {
    core_->cut(core_->find(rail), core_->find(other), how);
}

void Fabric::restore(std::string_view rail, std::string_view other) {
    core_->restore(core_->find(rail), core_->find(other));
}

void Fabric::rail_down(std::string_view rail, std::string_view cause) { core_->rail_down(core_->find(rail), cause); }
void Fabric::restore_rail(std::string_view rail) {
    auto& device = core_->device(core_->find(rail));
    device.down = false;
    if (device.rail != nullptr) device.rail->come_up();
}
const Counters& Fabric::counters(std::string_view rail) const { return core_->device(core_->find(rail)).counters; }

namespace {

class FabricTransport final : public Transport {
public:
    FabricTransport(Fabric& fabric, std::string host) : fabric_(fabric), host_(std::move(host)) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "sim"; }
    [[nodiscard]] std::vector<RailInfo> scan() override {
        auto found = fabric_.scan(host_);
        if (found.empty()) {
            RailInfo none;
            none.name = none.transport = "sim";
            none.reason = "host " + host_ + " has no rails on this fabric";
            none.cure = "add some with Fabric::add_rail";
            found.push_back(std::move(none));
        }
        return found;
    }
    [[nodiscard]] std::unique_ptr<Rail> open(const RailInfo& device) override {
        return fabric_.open(host_, device.device);
    }

private:
    Fabric& fabric_;
    std::string host_;
};

}  // namespace

std::unique_ptr<Transport> make_transport(Fabric& fabric, std::string host) {
    return std::make_unique<FabricTransport>(fabric, std::move(host));
}

}  // namespace railmux::transports::sim

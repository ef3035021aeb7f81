#include "fixture.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "transports/faulty_rail.hpp"
#include "transports/sim/fabric.hpp"
#include "transports/transport.hpp"

namespace railmux::contract {

namespace {

using transports::FaultyRail;
namespace sim = transports::sim;

struct Surroundings {
    Config config;
    base::Logger log{base::LogLevel::off};
    transports::Services services{config, log};
    std::vector<std::unique_ptr<transports::Transport>> all;
};

bool is_built_in(std::string_view transport) {
    Surroundings around;
    const auto all = transports::builtin_transports(around.services);
    return std::ranges::any_of(all, [&](const auto& each) { return each->name() == transport; });
}

/// Opens `device` of a transport that is built in, once or twice.
Fixture built_in(std::string_view transport, std::string_view device, std::size_t rails, std::string_view option = {}) {
    auto around = std::make_shared<Surroundings>();
    if (transport == "tcp") around->config.set("tcp.interfaces", device);
    if (option == "encrypted") around->config.set("tcp.encryption", "on").set("job.key", "a key");
    if (transport == "shm") around->config.set("shm.bulk", option);
    around->all = transports::builtin_transports(around->services);
    const auto kind = std::ranges::find(around->all, transport, [](const auto& t) { return t->name(); });
    if (kind == around->all.end()) throw std::runtime_error("no transport " + std::string(transport));
    const auto devices = (*kind)->scan();
    const auto found = std::ranges::find(devices, device, &RailInfo::device);
    if (found == devices.end()) throw std::runtime_error("no device " + std::string(device));
    Fixture fixture;
    fixture.first = (*kind)->open(*found);
    if (rails == 2) fixture.second = (*kind)->open(*found);
    fixture.surroundings.push_back(around);
    return fixture;
}

std::vector<RailInfo> usable_devices(transports::Transport& transport) {
    auto devices = transport.scan();
    std::erase_if(devices, [](const RailInfo& device) { return !device.usable; });
    return devices;
}

bool has_rdma() {
    Surroundings around;
    const auto all = transports::builtin_transports(around.services);
    const auto verbs = std::ranges::find(all, "verbs", [](const auto& t) { return t->name(); });
    return verbs != all.end() && !usable_devices(**verbs).empty();
}

/// The first port and another one of its network, or itself where there is none. The devices are listed once: in an emulated
/// machine that takes longer than most of what is tested.
Fixture over_rdma() {
    static const auto around = [] {
        auto made = std::make_shared<Surroundings>();
        made->all = transports::builtin_transports(made->services);
        return made;
    }();
    auto& verbs = **std::ranges::find(around->all, "verbs", [](const auto& t) { return t->name(); });
    static const auto devices = usable_devices(verbs);
    Fixture fixture;
    fixture.surroundings.push_back(around);
    fixture.first = verbs.open(devices.at(0));
    for (std::size_t i = 1; i < devices.size() && !fixture.second; ++i) {
        fixture.second = verbs.open(devices[i]);
        if (fixture.first->reach(fixture.second->address()).reach != transports::Reach::direct) fixture.second.reset();
    }
    if (!fixture.second) fixture.second = verbs.open(devices[0]);
    return fixture;
}

void restrain_fabric() {
    // Each endpoint of rxm touches 1024 buffers of this size, several times; with the default of 16 KiB that takes longer than
    // all the rest of a test.
    ::setenv("FI_OFI_RXM_BUFFER_SIZE", "1024", 0);
    // rxm asks verbs for completion queues that suffice for so many peers; with the default of 256 soft-RoCE has none so
    // large.
    ::setenv("FI_UNIVERSE_SIZE", "16", 0);
}

/// Two endpoints of one libfabric domain.
Fixture over_fabric(const std::string& device) {
    restrain_fabric();
    auto around = std::make_shared<Surroundings>();
    around->config.set("ofi.providers", device);
    around->config.set("connect.timeout", "500ms");  // how long an endpoint that is gone is tried
    around->all = transports::builtin_transports(around->services);
    const auto ofi = std::ranges::find(around->all, "ofi", [](const auto& t) { return t->name(); });
    const auto devices = (*ofi)->scan();
    const auto found = std::ranges::find(devices, device, &RailInfo::device);
    if (found == devices.end() || !found->usable) throw std::runtime_error("libfabric has no " + device);
    return {{around}, (*ofi)->open(*found), (*ofi)->open(*found)};
}

/// The domains with and without RDMA that there are.
std::vector<std::string> fabric_devices() {
    std::vector<std::string> devices{"tcp;ofi_rxm:lo", "udp;ofi_rxd:lo"};
    if (RAILMUX_FABRIC_SHM_PAIRS) devices.emplace_back("shm");
    if (!has_rdma()) return devices;
    restrain_fabric();
    Surroundings around;
    around.config.set("ofi.providers", "verbs;ofi_rxm");
    const auto all = transports::builtin_transports(around.services);
    const auto ofi = std::ranges::find(all, "ofi", [](const auto& t) { return t->name(); });
    const auto usable = usable_devices(**ofi);
    if (!usable.empty()) devices.push_back(usable.front().device);
    return devices;
}

Fixture simulated(std::uint64_t seed, const sim::RailOptions& options) {
    auto fabric = std::make_shared<sim::Fabric>(seed);
    Fixture fixture;
    fixture.first = fabric->open("a", options);
    fixture.second = fabric->open("b", options);
    fixture.idle = [fabric = fabric.get()] { return fabric->advance_to_next_event(); };
    fixture.surroundings.push_back(fabric);
    return fixture;
}

sim::RailOptions instant() { return {.timing = sim::simple_timing(0, 0, 0, 0, 0)}; }

sim::RailOptions unordered() {
    sim::RailOptions options{.timing = sim::simple_timing(1000, 100, 100, 50, 0.1), .ordered = false};
    options.timing.noise_mean_ns = 2000;
    options.tx_depth = 16;
    return options;
}

/// Slow and shallow, with two protocols and confirmed delivery, as some fabrics are.
sim::RailOptions confirmed() {
    sim::RailOptions options{.done_is_delivered = true, .tx_depth = 3};
    options.timing.ranges = {{.up_to_bytes = 256, .L = 1000, .g = 500, .G = 1},
                             {.L = 9000, .o_s = {.ns = 700}, .g = 2000, .G = 0.5}};
    return options;
}

/// Ends links for puts that are not allowed, as RDMA devices do.
sim::RailOptions strict() {
    return {
        .timing = sim::simple_timing(1000, 100, 100, 50, 0.1), .done_is_delivered = true, .bad_put_ends_link = true};
}

}  // namespace

std::vector<FixtureMaker> plain_fixtures() {
    std::vector<FixtureMaker> made{
        {"self", [](std::uint64_t) { return built_in("self", "self", 1); }},
        {"shm", [](std::uint64_t) { return built_in("shm", "node", 2, "fetch"); }},
        {"shm that copies", [](std::uint64_t) { return built_in("shm", "node", 2, "copy"); }},
        {"sim", [](std::uint64_t seed) { return simulated(seed, {}); }},
        {"sim instant", [](std::uint64_t seed) { return simulated(seed, instant()); }},
        {"sim unordered", [](std::uint64_t seed) { return simulated(seed, unordered()); }},
        {"sim confirmed", [](std::uint64_t seed) { return simulated(seed, confirmed()); }},
        {"sim strict", [](std::uint64_t seed) { return simulated(seed, strict()); }},
    };
    if (is_built_in("tcp")) {
        made.push_back({"tcp", [](std::uint64_t) { return built_in("tcp", "lo", 2); }});
        made.push_back({"tcp encrypted", [](std::uint64_t) { return built_in("tcp", "lo", 2, "encrypted"); }});
    }
    if (has_rdma()) made.push_back({"verbs", [](std::uint64_t) { return over_rdma(); }});
    if (is_built_in("ofi")) {
        for (const auto& device : fabric_devices()) {
            made.push_back({"ofi " + device, [device](std::uint64_t) { return over_fabric(device); }, 9});
        }
    }
    return made;
}

FixtureMaker with_faults(const FixtureMaker& plain, const std::string& plan) {
    return {plain.name + " behind " + (plan.empty() ? "an empty plan" : plan),
            [plain, plan](std::uint64_t seed) {
                auto faults = FaultyRail::Plan::parse(plan);
                faults.seed = seed;
                auto fixture = plain.make(seed);
                fixture.first = std::make_unique<FaultyRail>(std::move(fixture.first), faults);
                ++faults.seed;
                if (fixture.second) fixture.second = std::make_unique<FaultyRail>(std::move(fixture.second), faults);
                // What is held back comes with further polls, not with time.
                fixture.idle = [idle = fixture.idle] { return idle(), true; };
                return fixture;
            },
            plain.stride};
}

const std::vector<FixtureMaker>& fixtures() {
    static const auto all = [] {
        auto made = plain_fixtures();
        for (const auto& plain : plain_fixtures()) {
            constexpr auto refusing = "refuse=20%";
            constexpr auto delaying = "delay=10%:3,delay_work=10%:5";
            if (plain.stride > 1) {
                made.push_back(with_faults(plain, std::string(refusing) + ',' + delaying));
                continue;
            }
            for (const auto* plan : {"", refusing, delaying}) made.push_back(with_faults(plain, plan));
        }
        return made;
    }();
    return all;
}

}  // namespace railmux::contract

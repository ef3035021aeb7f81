// Transports are told which of their rails are slow, as traffic shows.
#include <map>
#include <set>
#include <utility>

#include "engine/sim_pair.hpp"
#include "forwarding_rail.hpp"

namespace railmux {

namespace {

using Told = std::map<std::string, std::set<bool>>;  // by rail: what Work::slow was

class WatchedRail final : public ForwardingRail {
public:
    WatchedRail(std::unique_ptr<Rail> below, Told& told) : ForwardingRail(std::move(below)), told_(told) {}
    [[nodiscard]] std::size_t post(std::span<const transports::Work> works) noexcept override {
        for (const auto& work : works) told_[traits().name].insert(work.slow);
        return ForwardingRail::post(works);
    }

private:
    Told& told_;
};

}  // namespace

TEST_CASE("a rail that is known to be slow is told so, and no other") {
    Told told;
    test::SimHosts hosts;
    hosts.around = [&](std::unique_ptr<transports::Rail> rail) -> std::unique_ptr<transports::Rail> {
        return std::make_unique<WatchedRail>(std::move(rail), told);
    };
    for (const auto& [device, ns_per_byte] : {std::pair{"fast", 1.0}, std::pair{"slow", 8.0}}) {  // 8 and 1 Gbit/s
        const auto timing = test::sim::simple_timing(2000, 300, 300, 400, ns_per_byte);
        for (const char* host : {"a", "b"}) {
            hosts.fabric.add_rail(host, {.device = device, .network = std::string("net-") + device, .timing = timing});
        }
    }
    const auto a = hosts.start("a", "vft");
    hosts.around = nullptr;  // the other side sends nothing of any size, and knows less
    const auto b = hosts.start("b", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());
    for (int i = 0; i < 20; ++i) hosts.deliver(*a, to_b, *b, to_a, 4 << 20);
    told.clear();
    hosts.deliver(*a, to_b, *b, to_a, 4 << 20);
    REQUIRE(told.size() == 2);
    for (const auto& [rail, slow] : told) {
        INFO(rail);
        CHECK(slow == std::set{rail.find("slow") != std::string::npos});
    }
}

}  // namespace railmux

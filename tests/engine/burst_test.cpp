// How many messages leave in one call, and when.
#include <vector>

#include "engine/sim_pair.hpp"
#include "forwarding_rail.hpp"

using namespace railmux;
using test::SimHosts;

namespace {

namespace sim = transports::sim;
constexpr auto us = base::microsecond;

/// Takes its time over each call that sends, and notes how many works that took.
class SlowCalls final : public ForwardingRail {
public:
    SlowCalls(std::unique_ptr<Rail> below, sim::Fabric& fabric, base::Nanoseconds cost, std::vector<std::size_t>& calls)
        : ForwardingRail(std::move(below)), fabric_(fabric), cost_(cost), calls_(calls) {}

    std::size_t post(std::span<const transports::Work> works) noexcept override {
        const auto taken = ForwardingRail::post(works);
        fabric_.advance(cost_);
        calls_.push_back(taken);
        return taken;
    }

private:
    sim::Fabric& fabric_;
    base::Nanoseconds cost_;
    std::vector<std::size_t>& calls_;
};

}  // namespace

TEST_CASE("the messages of a burst leave together, however long each call takes", "[engine]") {
    const auto cost = GENERATE(1 * us, 5 * us, 10 * us, 50 * us);
    std::vector<std::size_t> calls;
    SimHosts hosts;
    for (const char* host : {"a", "b"}) hosts.fabric.add_rail(host, {.device = "eth0", .network = "net0"});
    const auto b = hosts.start("b", "vft");
    hosts.around = [&](std::unique_ptr<transports::Rail> rail) {
        return std::make_unique<SlowCalls>(std::move(rail), hosts.fabric, cost, calls);
    };
    const auto a = hosts.start("a", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());
    hosts.deliver(*a, to_b, *b, to_a, 8);
    hosts.fabric.advance(1000 * us);
    while (a->progress() || b->progress()) {
    }

    calls.clear();
    const std::vector<std::byte> data(8);
    for (int i = 0; i < 8; ++i) static_cast<void>(a->isend(to_b, 1, data));
    a->progress();
    CAPTURE(cost);
    CHECK(calls == std::vector<std::size_t>{1, 7});
}

// How many messages leave in one call, and when.
#include <memory>
#include <vector>

#include "engine/sim_pair.hpp"
#include "forwarding_rail.hpp"
#include "fuzz/quiet_rail.hpp"

using namespace railmux;
using test::SimHosts;

namespace {

namespace sim = transports::sim;
constexpr auto us = base::microsecond;

/// Takes its time over each call that sends, and notes how many works that took. What may be quiet may go at once.
class SlowCalls final : public ForwardingRail {
public:
    SlowCalls(std::unique_ptr<Rail> below, sim::Fabric& fabric, base::Nanoseconds cost, std::vector<std::size_t>& calls)
        : ForwardingRail(std::move(below)), fabric_(fabric), cost_(cost), calls_(calls) {
        own_traits().chains = true;
    }

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

/// Two hosts with one rail, over which messages have gone; the calls of `a` that send are slow, and noted.
struct Two {
    explicit Two(base::Nanoseconds cost, std::uint32_t quiet_max = 0) {
        for (const char* host : {"a", "b"}) hosts.fabric.add_rail(host, {.device = "eth0", .network = "net0"});
        b = hosts.start("b", "vft");
        hosts.around = [this, cost, quiet_max](std::unique_ptr<transports::Rail> rail) {
            if (quiet_max > 0) rail = std::make_unique<QuietRail>(std::move(rail), quiet_max);
            return std::make_unique<SlowCalls>(std::move(rail), hosts.fabric, cost, calls);
        };
        a = hosts.start("a", "vft");
        to_b = a->add_peer(b->address());
        hosts.deliver(*a, to_b, *b, b->add_peer(a->address()), 8);
        hosts.fabric.advance(1000 * us);
        while (a->progress() || b->progress()) {
        }
        calls.clear();
    }

    std::vector<std::size_t> calls;
    SimHosts hosts;
    std::unique_ptr<messaging::Engine> a, b;
    Peer to_b;
    std::vector<std::byte> data = std::vector<std::byte>(8);
};

}  // namespace

TEST_CASE("the messages of a burst leave together, however long each call takes", "[engine]") {
    const auto cost = GENERATE(1 * us, 5 * us, 10 * us, 50 * us);
    const auto quiet_max = GENERATE(0U, 1024U);
    Two two(cost, quiet_max);
    for (int i = 0; i < 8; ++i) static_cast<void>(two.a->isend(two.to_b, 1, two.data));
    two.a->progress();
    CAPTURE(cost, quiet_max);
    CHECK(two.calls == std::vector<std::size_t>{1, 7});
}

TEST_CASE("what waits leaves with each call that asks for results, though they are there", "[engine]") {
    Two two(1 * us);
    static_cast<void>(two.a->isend(two.to_b, 1, two.data));
    std::vector<Request> sent;
    sent.push_back(two.a->isend(two.to_b, 1, two.data));
    REQUIRE(two.calls == std::vector<std::size_t>{1});
    SECTION("test") { CHECK(two.a->test(sent.front()).has_value()); }
    SECTION("wait") { CHECK(two.a->wait(sent.front()).ok()); }
    SECTION("wait_any") { CHECK(two.a->wait_any(sent).index == 0); }
    SECTION("wait_all") { CHECK(two.a->wait_all(sent, {}) == ErrorCode::ok); }
    SECTION("probe") { CHECK_FALSE(two.a->probe(two.to_b, 2).has_value()); }
    CHECK(two.calls == std::vector<std::size_t>{1, 1});
}
